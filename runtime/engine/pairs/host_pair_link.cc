// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/pairs/host_pair_link.h"

#include <algorithm>
#include <cstring>

namespace hvd::rt {

absl::StatusOr<std::unique_ptr<PairLink>> HostPairLink::Make(const HostPairPlace& place) {
  constexpr size_t kBytes = 2 * sizeof(Lane);
  std::atomic<uint64_t>& at = place.places.Of(place.local_rank, place.peer);
  uint64_t found = at.load(std::memory_order_acquire);
  if (found == 0) {
    const absl::StatusOr<uint64_t> mine = place.space->Take(kBytes);
    if (!mine.ok()) return mine.status();
    if (at.compare_exchange_strong(found, *mine)) found = *mine;
  }
  auto mapped = place.space->Map(found, kBytes);
  if (!mapped.ok()) return mapped.status();
  return std::unique_ptr<PairLink>(
      new HostPairLink(*std::move(mapped), place.local_rank < place.peer));
}

void HostPairLink::GiveBack(const PairPlaces& places, SharedSpace* space) {
  for (std::atomic<uint64_t>& place : places.all()) {
    if (const uint64_t at = place.exchange(0); at != 0) space->Give(at, 2 * sizeof(Lane));
  }
}

HostPairLink::HostPairLink(std::shared_ptr<std::byte> memory, bool first)
    : memory_(std::move(memory)),
      out_(reinterpret_cast<Lane*>(memory_.get())[first ? 0 : 1]),
      in_(reinterpret_cast<Lane*>(memory_.get())[first ? 1 : 0]) {}

absl::StatusOr<bool> HostPairLink::Send(const PairNotice& notice) {
  if (sent_ - out_.notices_taken.load(std::memory_order_acquire) == Lane::kNotices) return false;
  out_.notices[sent_ % Lane::kNotices] = notice;
  out_.notices_put.store(++sent_, std::memory_order_release);
  return true;
}

absl::StatusOr<bool> HostPairLink::Receive(PairNotice* notice) {
  const uint64_t taken = in_.notices_taken.load(std::memory_order_relaxed);
  if (in_.notices_put.load(std::memory_order_acquire) == taken) return false;
  *notice = in_.notices[taken % Lane::kNotices];
  in_.notices_taken.store(taken + 1, std::memory_order_release);
  return true;
}

absl::Status HostPairLink::BeginSend(Parcel* parcel) {
  outgoing_.push_back(parcel);
  return absl::OkStatus();
}

absl::Status HostPairLink::BeginReceive(Parcel* parcel) {
  incoming_.push_back(parcel);
  return absl::OkStatus();
}

absl::StatusOr<bool> HostPairLink::Step(std::vector<Parcel*>* done) {
  bool moved = false;
  while (PutPiece(done)) moved = true;
  for (;;) {
    const absl::StatusOr<bool> took = TakePiece(done);
    if (!took.ok() || !*took) return took.ok() ? absl::StatusOr<bool>(moved) : took;
    moved = true;
  }
}

// The receiver waits for the parcel, so what is put is taken: no parcel waits for another.
bool HostPairLink::PutPiece(std::vector<Parcel*>* done) {
  if (outgoing_.empty()) return false;
  const uint64_t put = out_.pieces_put.load(std::memory_order_relaxed);
  if (put - out_.pieces_taken.load(std::memory_order_acquire) == Lane::kPieces) return false;
  Parcel* parcel = outgoing_.front();
  const size_t bytes = std::min(parcel->bytes - parcel->moved, Lane::kPieceBytes);
  std::memcpy(out_.pieces[put % Lane::kPieces], parcel->data + parcel->moved, bytes);
  out_.heads[put % Lane::kPieces] = {parcel->number, static_cast<uint32_t>(bytes)};
  out_.pieces_put.store(put + 1, std::memory_order_release);
  parcel->moved += bytes;
  if (parcel->moved < parcel->bytes) return true;
  outgoing_.pop_front();
  done->push_back(parcel);
  return true;
}

// Parcels begin to come in the order in which their sender learnt of the receives.
absl::StatusOr<bool> HostPairLink::TakePiece(std::vector<Parcel*>* done) {
  const uint64_t taken = in_.pieces_taken.load(std::memory_order_relaxed);
  if (in_.pieces_put.load(std::memory_order_acquire) == taken) return false;
  const typename Lane::Piece head = in_.heads[taken % Lane::kPieces];
  const auto at = std::find_if(incoming_.begin(), incoming_.end(),
                               [&](const Parcel* parcel) { return parcel->number == head.parcel; });
  // The sender may have heard of the receive before this rank has heard of the send.
  if (at == incoming_.end()) return false;
  Parcel* parcel = *at;
  if (head.bytes > parcel->bytes - parcel->moved) {
    return absl::InternalError("a rank of this host sends more than it has said");
  }
  std::memcpy(parcel->data + parcel->moved, in_.pieces[taken % Lane::kPieces], head.bytes);
  in_.pieces_taken.store(taken + 1, std::memory_order_release);
  parcel->moved += head.bytes;
  if (parcel->moved < parcel->bytes) return true;
  incoming_.erase(at);
  done->push_back(parcel);
  return true;
}

}  // namespace hvd::rt
