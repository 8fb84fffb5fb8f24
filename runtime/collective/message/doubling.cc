// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/message/doubling.h"
#include "runtime/collective/kernels/copy.h"

#include <bit>
#include <utility>

namespace hvd::rt {
namespace {

class Doubling {
 public:
  Doubling(MessageGroup* group, const MessageReduce& reduce, std::byte* room)
      : group_(group),
        reduce_(reduce),
        room_(room),
        doubling_(static_cast<int>(std::bit_floor(static_cast<unsigned>(group->size())))) {}

  // Ranks from the largest power of two on first add to a rank below it, and are told the result.
  absl::Status Run() {
    const int rank = group_->rank();
    if (rank >= doubling_) return AddTo(rank - doubling_);
    const bool has_extra = rank + doubling_ < group_->size();
    if (has_extra) {
      absl::Status ok = group_->Receive(rank + doubling_, room_, reduce_.bytes(), &receive_);
      if (ok.ok()) ok = group_->Await(&receive_);
      if (!ok.ok()) return ok;
      Add(/*lower_first=*/true, SumKind::kPartial);
    }
    for (int distance = 1; distance < doubling_; distance *= 2) {
      const bool is_last = distance * 2 == doubling_;
      absl::Status ok = ExchangeWith(rank ^ distance, is_last ? SumKind::kLast : SumKind::kPartial);
      if (!ok.ok()) return ok;
    }
    if (!has_extra) return absl::OkStatus();
    absl::Status ok = group_->Send(rank + doubling_, reduce_.output, reduce_.bytes(), &send_);
    return ok.ok() ? group_->Await(&send_) : ok;
  }

 private:
  absl::Status AddTo(int peer) {
    absl::Status ok = group_->Send(peer, reduce_.output, reduce_.bytes(), &send_);
    if (ok.ok()) ok = group_->Await(&send_);
    if (ok.ok()) ok = group_->Receive(peer, reduce_.output, reduce_.bytes(), &receive_);
    return ok.ok() ? group_->Await(&receive_) : ok;
  }
  absl::Status ExchangeWith(int peer, SumKind kind) {
    absl::Status ok = group_->Receive(peer, room_, reduce_.bytes(), &receive_);
    if (ok.ok()) ok = group_->Send(peer, reduce_.output, reduce_.bytes(), &send_);
    if (ok.ok()) ok = group_->Await(&receive_);
    if (ok.ok()) ok = group_->Await(&send_);
    if (!ok.ok()) return ok;
    Add(peer > group_->rank(), kind);
    return absl::OkStatus();
  }
  void Add(bool lower_first, SumKind kind) {
    const void* sources[2] = {reduce_.output, room_};
    if (!lower_first) std::swap(sources[0], sources[1]);
    Combine(reduce_, {sources}, reduce_.output, reduce_.count, kind);
  }

  MessageGroup* const group_;
  const MessageReduce& reduce_;
  std::byte* const room_;
  const int doubling_;  // how many ranks double
  MessageGroup::Request receive_, send_;
};

}  // namespace

absl::Status DoublingAllreduce(MessageGroup* group, const MessageReduce& reduce,
                               std::vector<std::byte>* room) {
  room->resize(reduce.bytes());
  MessageReduce scaled = reduce;
  ApplyPrescale(&scaled);
  if (scaled.output != scaled.input) CopyBytes(scaled.output, scaled.input, scaled.bytes());
  return Doubling(group, scaled, room->data()).Run();
}

}  // namespace hvd::rt
