// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/pairs/message_pair_link.h"

#include <utility>

namespace hvd::rt {
namespace {

constexpr uint32_t kNoticeStep = 0;
// A transport may tell fewer steps apart than there are numbers; so many parcels are never on their
// way at one time. Sets that use a channel one after the other begin at different ones.
constexpr uint32_t kParcelSteps = (1u << 18) - 1;
constexpr uint32_t kApart = 7919;

}  // namespace

MessageTag MessagePairLink::TagOf(const Parcel& parcel) const {
  const uint64_t number = parcel.number + uint64_t{kApart} * static_cast<uint32_t>(place_.set);
  return {place_.channel, 1 + static_cast<uint32_t>(number % kParcelSteps)};
}

absl::StatusOr<bool> MessagePairLink::Send(const PairNotice& notice) {
  if (leaving_.size() == kMostNotices) return false;
  auto copy = std::make_unique<PairNotice>(notice);
  auto request =
      place_.transport->Send(place_.peer, {place_.channel, kNoticeStep}, copy.get(), sizeof(*copy));
  if (!request.ok()) return request.status();
  leaving_.push_back({std::move(copy), *std::move(request)});
  return true;
}

absl::StatusOr<bool> MessagePairLink::Receive(PairNotice* notice) {
  for (;;) {
    if (awaiting_ == nullptr) {
      auto request = place_.transport->Receive(place_.peer, {place_.channel, kNoticeStep}, &next_,
                                               sizeof(next_));
      if (!request.ok()) return request.status();
      awaiting_ = *std::move(request);
      posted_ = true;
    }
    const absl::StatusOr<bool> came = awaiting_->Test();
    if (!came.ok() || !*came) return came;
    awaiting_.reset();
    if (next_.set != place_.set) continue;  // of a set that had the channel before
    *notice = next_;
    return true;
  }
}

absl::Status MessagePairLink::BeginSend(Parcel* parcel) {
  auto request = place_.transport->Send(place_.peer, TagOf(*parcel), parcel->data, parcel->bytes);
  if (!request.ok()) return request.status();
  moving_.push_back({parcel, *std::move(request)});
  return absl::OkStatus();
}

absl::Status MessagePairLink::BeginReceive(Parcel* parcel) {
  auto request =
      place_.transport->Receive(place_.peer, TagOf(*parcel), parcel->data, parcel->bytes);
  if (!request.ok()) return request.status();
  moving_.push_back({parcel, *std::move(request)});
  return absl::OkStatus();
}

absl::StatusOr<bool> MessagePairLink::Step(std::vector<Parcel*>* done) {
  bool moved = std::exchange(posted_, false);  // who waits progresses it before he sleeps
  while (!leaving_.empty()) {
    const absl::StatusOr<bool> left = leaving_.front().request->Test();
    if (!left.ok()) return left;
    if (!*left) break;
    leaving_.pop_front();
    ++gone_;
    moved = true;
  }
  for (auto at = moving_.begin(); at != moving_.end();) {
    const absl::StatusOr<bool> came = at->request->Test();
    if (!came.ok()) return came;
    if (*came) done->push_back(at->parcel);
    moved = moved || *came;
    at = *came ? moving_.erase(at) : std::next(at);
  }
  return moved;
}

}  // namespace hvd::rt
