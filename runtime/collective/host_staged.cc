#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "runtime/collective/host_paths.h"

namespace hvd {

size_t HostReduce::largest_slice() const {
  size_t largest = 0;
  for (size_t r = 0; r + 1 < bounds.size(); ++r) {
    largest = std::max(largest, bounds[r + 1] - bounds[r]);
  }
  return largest;
}

namespace {

struct Range {
  size_t begin = 0;
  size_t count = 0;
};

// Part `index` of a range that is cut in parts of `piece`; may be empty.
Range Part(Range whole, uint64_t index, size_t piece) {
  const size_t skipped = std::min(whole.count, index * piece);
  return {whole.begin + skipped, std::min(piece, whole.count - skipped)};
}

// One reduction in rounds. In step i a rank stages round i, sums round i-1 and collects round i-2,
// so that each wait is for something that the peers did a step ago.
class StagedReduction {
 public:
  StagedReduction(HostGroup& group, const HostReduce& reduce, size_t piece_bytes)
      : group_(group), reduce_(reduce) {
    const size_t room = group.stage_bytes() / group.size() / 64 * 64;
    piece_ = std::max(size_t{64}, std::min(piece_bytes, room) / 64 * 64) / reduce.element_bytes;
    rounds_ = (reduce.largest_slice() + piece_ - 1) / piece_;
  }

  absl::Status Run() {
    for (uint64_t step = 0; step < rounds_ + 2; ++step) {
      absl::Status done;
      if (step < rounds_) done = Stage(step);
      if (done.ok() && step >= 1 && step - 1 < rounds_) done = Sum(step - 1);
      if (done.ok() && step >= 2) done = Collect(step - 2);
      if (!done.ok()) return done;
    }
    group_.AddRounds(rounds_);
    return absl::OkStatus();
  }

 private:
  // Elements of `owner`'s slice in a round.
  Range Slice(int owner, uint64_t round) const {
    const size_t begin = reduce_.bounds[owner];
    return Part({begin, reduce_.bounds[owner + 1] - begin}, round, piece_);
  }
  // Where `shower` shows elements of `owner`'s slice.
  std::byte* Shown(int shower, int owner, uint64_t round) const {
    return group_.stage(shower, group_.first_round() + round) +
           owner * piece_ * reduce_.element_bytes;
  }

  absl::Status Stage(uint64_t round) {
    absl::Status free = group_.AwaitStage(group_.first_round() + round);
    if (!free.ok()) return free;
    for (int owner = 0; owner < group_.size(); ++owner) {
      const Range slice = Slice(owner, round);
      if (owner == group_.rank() || slice.count == 0) continue;
      memcpy(Shown(group_.rank(), owner, round),
             reduce_.input + slice.begin * reduce_.element_bytes,
             slice.count * reduce_.element_bytes);
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
    if (slice.count > 0) {
      absl::InlinedVector<const void*, 16> sources(group_.size());
      for (int peer = 0; peer < group_.size(); ++peer) sources[peer] = Shown(peer, me, round);
      sources[me] = reduce_.input + slice.begin * reduce_.element_bytes;
      const size_t offset = (slice.begin - reduce_.bounds[me]) * reduce_.element_bytes;
      void* destinations[2] = {reduce_.own_output(me) + offset, Shown(me, me, round)};
      reduce_.kernel({.sources = sources.data(),
                      .source_count = group_.size(),
                      .destinations = destinations,
                      .destination_count = reduce_.gather ? 2 : 1,
                      .count = slice.count,
                      .divisor = reduce_.divisor});
    }
    group_.Advance(reduce_.gather ? HostGroup::kReduced : HostGroup::kConsumed, done);
    return absl::OkStatus();
  }

  absl::Status Collect(uint64_t round) {
    if (!reduce_.gather) return absl::OkStatus();
    const uint64_t done = group_.first_round() + round + 1;
    for (int i = 1; i < group_.size(); ++i) {
      // Each starts with its right neighbour, so that not all read the same rank at once.
      const int owner = (group_.rank() + i) % group_.size();
      absl::Status reduced = group_.Await(HostGroup::kReduced, owner, done);
      if (!reduced.ok()) return reduced;
      const Range slice = Slice(owner, round);
      if (slice.count == 0) continue;
      memcpy(reduce_.output + slice.begin * reduce_.element_bytes, Shown(owner, owner, round),
             slice.count * reduce_.element_bytes);
    }
    group_.Advance(HostGroup::kConsumed, done);
    return absl::OkStatus();
  }

  HostGroup& group_;
  const HostReduce& reduce_;
  size_t piece_;  // elements of a slice in a round
  uint64_t rounds_;
};

// Shows a piece of this rank's own data and counts it staged.
absl::Status StagePiece(HostGroup& group, uint64_t round, const std::byte* data, size_t bytes) {
  if (absl::Status free = group.AwaitStage(round); !free.ok()) return free;
  if (bytes > 0) memcpy(group.stage(group.rank(), round), data, bytes);
  group.Advance(HostGroup::kStaged, round + 1);
  return absl::OkStatus();
}

// Fetches what every other rank shows in `round`, and counts it consumed.
absl::Status CollectParts(HostGroup& group, const GatherArgs& args, Range piece) {
  const uint64_t round = group.first_round() + piece.begin / piece.count;
  auto* to = static_cast<std::byte*>(args.output);
  for (int peer = 0; peer < group.size(); ++peer) {
    const size_t whole = args.bytes_by_rank[peer];
    if (peer != group.rank() && piece.begin < whole) {
      absl::Status staged = group.Await(HostGroup::kStaged, peer, round + 1);
      if (!staged.ok()) return staged;
      memcpy(to + piece.begin, group.stage(peer, round),
             std::min(piece.count, whole - piece.begin));
    }
    to += whole;
  }
  group.Advance(HostGroup::kConsumed, round + 1);
  return absl::OkStatus();
}

}  // namespace

absl::Status StagedReduce(HostGroup& group, const HostReduce& reduce, size_t piece_bytes) {
  return StagedReduction(group, reduce, piece_bytes).Run();
}

absl::Status StagedAllgather(HostGroup& group, const GatherArgs& args, size_t piece_bytes) {
  const size_t piece = std::min(piece_bytes, group.stage_bytes());
  const size_t mine = args.bytes_by_rank[group.rank()];
  const auto* input = static_cast<const std::byte*>(args.input);
  auto* own_output = static_cast<std::byte*>(args.output);
  size_t largest = 0;
  for (int peer = 0; peer < group.size(); ++peer) {
    largest = std::max(largest, args.bytes_by_rank[peer]);
    if (peer < group.rank()) own_output += args.bytes_by_rank[peer];
  }
  const uint64_t rounds = (largest + piece - 1) / piece;
  for (uint64_t step = 0; step <= rounds; ++step) {
    if (step < rounds) {
      const Range part = Part({0, mine}, step, piece);
      absl::Status staged =
          StagePiece(group, group.first_round() + step, input + part.begin, part.count);
      if (!staged.ok()) return staged;
      if (part.count > 0 && own_output != input) {
        memcpy(own_output + part.begin, input + part.begin, part.count);
      }
    }
    if (step == 0) continue;
    absl::Status collected = CollectParts(group, args, {(step - 1) * piece, piece});
    if (!collected.ok()) return collected;
  }
  group.AddRounds(rounds);
  return absl::OkStatus();
}

absl::Status StagedBroadcast(HostGroup& group, const BroadcastArgs& args, size_t piece_bytes) {
  const size_t piece = std::min(piece_bytes, group.stage_bytes());
  const uint64_t rounds = (args.bytes + piece - 1) / piece;
  const auto* input = static_cast<const std::byte*>(args.input);
  auto* output = static_cast<std::byte*>(args.output);
  const bool is_root = group.rank() == args.root;
  for (uint64_t i = 0; i < rounds; ++i) {
    const uint64_t round = group.first_round() + i;
    const Range part = Part({0, args.bytes}, i, piece);
    if (is_root) {
      absl::Status staged = StagePiece(group, round, input + part.begin, part.count);
      if (!staged.ok()) return staged;
      if (output != input) memcpy(output + part.begin, input + part.begin, part.count);
    } else {
      absl::Status staged = group.Await(HostGroup::kStaged, args.root, round + 1);
      if (!staged.ok()) return staged;
      memcpy(output + part.begin, group.stage(args.root, round), part.count);
    }
    group.Advance(HostGroup::kConsumed, round + 1);
  }
  group.AddRounds(rounds);
  return absl::OkStatus();
}

}  // namespace hvd
