// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/peer_reads.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace hvd::rt {
namespace {

// The bytes that are read of all peers at a time: they should still be in the cache when they are
// summed.
constexpr size_t kReadBytes = size_t{256} << 10;

// One reduction in rounds. In a round a rank reads the peers' part of its slice, sums it into its
// own output, and reads what the others have summed the round before.
class PeerReadReduction {
 public:
  PeerReadReduction(HostGroup& group, const HostReduce& reduce,
                    absl::Span<const MemoryOffer> offers)
      : group_(group),
        reduce_(reduce),
        offers_(offers),
        width_(reduce.tensors.element_bytes()),
        sources_(group.size()) {
    const size_t share = kReadBytes / (group.size() - 1);
    piece_ = std::max(HostRegion::kMinSliceBytes, share) / 64 * 64 / width_;
    rounds_ = (reduce.largest_slice() + piece_ - 1) / piece_;
  }

  absl::Status Run() {
    for (uint64_t step = 0; step <= rounds_; ++step) {
      absl::Status done = group_.Check();
      if (done.ok() && step < rounds_) done = Sum(step);
      if (done.ok() && step > 0) done = Collect(step - 1);
      if (!done.ok()) return done;
    }
    group_.AddRounds(rounds_);
    return absl::OkStatus();
  }

 private:
  // The part of `owner`'s slice in a round, in bytes; may be empty.
  struct Range {
    size_t begin = 0;
    size_t bytes = 0;
  };
  Range Slice(int owner, uint64_t round) const {
    const HostReduce::Range elements = reduce_.Piece(owner, round, piece_);
    return {elements.begin * width_, elements.count * width_};
  }

  absl::Status Read(int peer, const std::byte* from, std::byte* to, size_t bytes) {
    absl::Status read = ReadMemory(offers_[peer].pid, from, to, bytes);
    if (read.ok()) return read;
    return group_.EndEpoch(std::string(read.message()) +
                           "; was a tensor freed while it was reduced? HVD_PEER_READ_BYTES=0 does "
                           "without reading one another's memory");
  }

  absl::Status Sum(uint64_t round) {
    const int me = group_.rank();
    const Range slice = Slice(me, round);
    // Nobody else looks at this rank's stage: all have entered this reduction.
    std::byte* room = group_.reduce_stage(me, 0);
    for (int i = 1; i < group_.size(); ++i) {
      // Each starts with another one, so that not all read the same process at once.
      const int peer = (me + i) % group_.size();
      absl::Status read = Read(peer, offers_[peer].input + slice.begin, room, slice.bytes);
      if (!read.ok()) return read;
      sources_[peer] = room;
      room += piece_ * width_;
    }
    sources_[me] = offers_[me].input + slice.begin;
    void* const sum = Output() + slice.begin;
    reduce_.Combine(sources_, {&sum, 1}, slice.bytes / width_);
    group_.Advance(HostGroup::kDone, group_.first_round() + round + 1);
    return absl::OkStatus();
  }

  absl::Status Collect(uint64_t round) {
    return group_.CollectDone(group_.first_round() + round + 1, [&](int owner) {
      const Range slice = Slice(owner, round);
      return Read(owner, offers_[owner].output + slice.begin, Output() + slice.begin, slice.bytes);
    });
  }

  std::byte* Output() const {
    return static_cast<std::byte*>(reduce_.tensors.parts().front().output);
  }

  HostGroup& group_;
  const HostReduce& reduce_;
  const absl::Span<const MemoryOffer> offers_;
  const size_t width_;  // of an element
  size_t piece_;        // elements of a slice in a round
  uint64_t rounds_;
  absl::InlinedVector<const void*, 16> sources_;
};

}  // namespace

absl::Status PeerReadReduce(HostGroup& group, const HostReduce& reduce,
                            absl::Span<const MemoryOffer> offers) {
  return PeerReadReduction(group, reduce, offers).Run();
}

}  // namespace hvd::rt
