// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/staged_reduce.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace hvd::rt {
namespace {

// One reduction in rounds. In step i a rank collects round i-2, stages round i in the same place
// and sums round i-1, so that each wait is for something that the peers did a step ago.
class StagedReduction {
 public:
  StagedReduction(HostGroup& group, const HostReduce& reduce, const StagedOptions& options)
      : group_(group),
        reduce_(reduce),
        width_(reduce.tensors.element_bytes()),
        sources_(group.size()),
        destinations_(group.size()) {
    const size_t room = group.stage_bytes() / (group.size() - 1);
    piece_ = std::max(size_t{64}, std::min(options.piece_bytes, room) / 64 * 64) / width_;
    rounds_ = (reduce.largest_slice() + piece_ - 1) / piece_;
  }

  absl::Status Run() {
    for (uint64_t step = 0; step < rounds_ + 2; ++step) {
      absl::Status done;
      if (step >= 2 && reduce_.gather) done = Collect(step - 2);
      if (done.ok() && step < rounds_) done = Stage(step);
      if (done.ok() && step >= 1 && step - 1 < rounds_) done = Sum(step - 1);
      if (!done.ok()) return done;
    }
    group_.AddRounds(rounds_);
    return absl::OkStatus();
  }

 private:
  using Range = HostReduce::Range;
  Range Slice(int owner, uint64_t round) const { return reduce_.Piece(owner, round, piece_); }
  // Where `shower` shows elements of `owner`'s slice, and later finds their sums.
  std::byte* Shown(int shower, int owner, uint64_t round) const {
    const int place = owner < shower ? owner : owner - 1;
    return group_.reduce_stage(shower, group_.first_round() + round) + place * piece_ * width_;
  }

  absl::Status Stage(uint64_t round) {
    absl::Status free = group_.AwaitReduceStage(group_.first_round() + round);
    if (!free.ok()) return free;
    for (int owner = 0; owner < group_.size(); ++owner) {
      if (owner == group_.rank()) continue;
      const Range slice = Slice(owner, round);
      reduce_.tensors.CopyIn(slice.begin, slice.count, Shown(group_.rank(), owner, round));
    }
    group_.Advance(HostGroup::kStaged, group_.first_round() + round + 1);
    return absl::OkStatus();
  }

  absl::Status Sum(uint64_t round) {
    const uint64_t done = group_.first_round() + round + 1;
    absl::Status staged = group_.AwaitAll(HostGroup::kStaged, done);
    if (!staged.ok()) return staged;
    const int me = group_.rank();
    const Range slice = Slice(me, round);
    std::byte* own = reduce_.slice_output + (slice.begin - reduce_.bounds[me]) * width_;
    reduce_.tensors.ForEachPiece(slice.begin, slice.count, [&](const TensorView::Piece& piece) {
      for (int peer = 0; peer < group_.size(); ++peer) {
        if (peer == me) continue;
        std::byte* shown = Shown(peer, me, round) + piece.at;
        sources_[peer] = destinations_[peer] = shown;
      }
      sources_[me] = piece.input();
      destinations_[me] = reduce_.gather ? piece.output() : own + piece.at;
      const auto destinations = absl::MakeConstSpan(destinations_);
      reduce_.Combine(sources_, reduce_.gather ? destinations : destinations.subspan(me, 1),
                      piece.count);
    });
    group_.Advance(HostGroup::kDone, done);
    return absl::OkStatus();
  }

  absl::Status Collect(uint64_t round) {
    return group_.CollectDone(group_.first_round() + round + 1, [&](int owner) {
      const Range slice = Slice(owner, round);
      reduce_.tensors.CopyOut(Shown(group_.rank(), owner, round), slice.begin, slice.count);
      return absl::OkStatus();
    });
  }

  HostGroup& group_;
  const HostReduce& reduce_;
  const size_t width_;  // of an element
  size_t piece_;        // elements of a slice in a round
  uint64_t rounds_;
  absl::InlinedVector<const void*, 16> sources_;
  absl::InlinedVector<void*, 16> destinations_;
};

}  // namespace

absl::Status StagedReduce(HostGroup& group, const HostReduce& reduce,
                          const StagedOptions& options) {
  return StagedReduction(group, reduce, options).Run();
}

}  // namespace hvd::rt
