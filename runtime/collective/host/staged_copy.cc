// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/staged_copy.h"

#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/slices.h"

namespace hvd::rt {

void CopyOut(void* to, const void* from, size_t bytes, bool streams) {
  if (bytes == 0) return;
  if (streams) {
    StreamCopy(to, from, bytes);
  } else {
    CopyBytes(to, from, bytes);
  }
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

// Shows a piece of this rank's own data and counts it staged.
absl::Status StagePiece(HostGroup& group, uint64_t round, const std::byte* data, size_t bytes) {
  if (absl::Status free = group.AwaitCopyStage(round); !free.ok()) return free;
  CopyBytes(group.copy_stage(group.rank(), round), data, bytes);
  group.Advance(HostGroup::kStaged, round + 1);
  return absl::OkStatus();
}

// Fetches what every other rank shows in `round`, and counts itself done.
absl::Status CollectParts(HostGroup& group, const GatherArgs& args, Range piece, bool streams) {
  const uint64_t round = group.first_round() + piece.begin / piece.count;
  auto* to = static_cast<std::byte*>(args.output);
  for (int peer = 0; peer < group.size(); ++peer) {
    const size_t whole = args.bytes_by_rank[peer];
    if (peer != group.rank() && piece.begin < whole) {
      absl::Status staged = group.Await(HostGroup::kStaged, peer, round + 1);
      if (!staged.ok()) return staged;
      CopyOut(to + piece.begin, group.copy_stage(peer, round),
              std::min(piece.count, whole - piece.begin), streams);
    }
    to += whole;
  }
  group.Advance(HostGroup::kDone, round + 1);
  return absl::OkStatus();
}

}  // namespace

absl::Status StagedAllgather(HostGroup& group, const GatherArgs& args,
                             const StagedOptions& options) {
  const size_t piece = std::min(options.piece_bytes, group.stage_bytes());
  const size_t mine = args.bytes_by_rank[group.rank()];
  const auto* input = static_cast<const std::byte*>(args.input);
  auto* own_output = static_cast<std::byte*>(args.output);
  for (int peer = 0; peer < group.rank(); ++peer) own_output += args.bytes_by_rank[peer];
  const size_t largest = SumAndLargest(args.bytes_by_rank).second;
  const uint64_t rounds = (largest + piece - 1) / piece;
  for (uint64_t step = 0; step <= rounds; ++step) {
    if (step < rounds) {
      const Range part = Part({0, mine}, step, piece);
      absl::Status staged =
          StagePiece(group, group.first_round() + step, input + part.begin, part.count);
      if (!staged.ok()) return staged;
      if (own_output != input) {
        CopyOut(own_output + part.begin, input + part.begin, part.count, options.streams);
      }
    }
    if (step == 0) continue;
    absl::Status collected =
        CollectParts(group, args, {(step - 1) * piece, piece}, options.streams);
    if (!collected.ok()) return collected;
  }
  group.AddRounds(rounds);
  return absl::OkStatus();
}

absl::Status StagedBroadcast(HostGroup& group, const BroadcastArgs& args,
                             const StagedOptions& options) {
  const size_t piece = std::min(options.piece_bytes, group.stage_bytes());
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
      if (output != input) {
        CopyOut(output + part.begin, input + part.begin, part.count, options.streams);
      }
    } else {
      absl::Status staged = group.Await(HostGroup::kStaged, args.root, round + 1);
      if (!staged.ok()) return staged;
      CopyOut(output + part.begin, group.copy_stage(args.root, round), part.count, options.streams);
    }
    group.Advance(HostGroup::kDone, round + 1);
  }
  group.AddRounds(rounds);
  return absl::OkStatus();
}

namespace {

// A rank knows what it sends and gets itself, not what the others do among one another: so all say
// as they arrive how much the most is, with the first piece for each rank on the shelf. Where that
// was all, nothing more is to do; else the rest goes in rounds, as many for all.
class Alltoall {
 public:
  Alltoall(HostGroup& group, const AlltoallArgs& args, const StagedOptions& options)
      : group_(group), args_(args), streams_(options.streams) {
    const auto cut = [&](size_t room) {
      const size_t place = room / (group.size() - 1) / 64 * 64;
      return std::min(place, std::max(size_t{64}, options.piece_bytes / 64 * 64));
    };
    on_shelf_ = cut(HostRegion::kShelfBytes);
    piece_ = cut(group.stage_bytes());
    size_t sent = 0;
    size_t received = 0;
    for (int peer = 0; peer < group.size(); ++peer) {
      sources_.push_back(static_cast<const std::byte*>(args.input) + sent);
      destinations_.push_back(static_cast<std::byte*>(args.output) + received);
      sent += args.send_bytes[peer];
      received += args.receive_bytes[peer];
    }
  }

  absl::Status Run() {
    uint64_t largest = SumAndLargest(args_.send_bytes).second;
    if (absl::Status begun = group_.Begin(); !begun.ok()) return begun;
    Show(group_.shelf(group_.rank()), {0, on_shelf_});
    group_.Arrive({reinterpret_cast<const std::byte*>(&largest), sizeof(largest)});
    CopyOut(destinations_[group_.rank()], sources_[group_.rank()], args_.send_bytes[group_.rank()],
            streams_);
    for (int i = 1; i < group_.size(); ++i) {
      const int peer = (group_.rank() + i) % group_.size();
      if (absl::Status shown = group_.AwaitArrival(peer); !shown.ok()) return shown;
      uint64_t theirs = 0;
      memcpy(&theirs, group_.payload(peer), sizeof(theirs));
      largest = std::max(largest, theirs);
      Fetch(peer, group_.shelf(peer), {0, on_shelf_});
    }
    return largest <= on_shelf_ ? absl::OkStatus() : RunRounds(largest - on_shelf_);
  }

 private:
  // Bytes of what one rank sends another; more than there is means up to the end.
  struct Portion {
    size_t begin = 0;
    size_t count = 0;
    size_t Of(size_t all) const { return begin < all ? std::min(count, all - begin) : 0; }
  };

  absl::Status RunRounds(size_t largest) {
    const uint64_t rounds = (largest + piece_ - 1) / piece_;
    for (uint64_t step = 0; step <= rounds; ++step) {
      const uint64_t round = group_.first_round() + step;
      if (step < rounds) {
        if (absl::Status free = group_.AwaitCopyStage(round); !free.ok()) return free;
        Show(group_.copy_stage(group_.rank(), round), {on_shelf_ + step * piece_, piece_});
        group_.Advance(HostGroup::kStaged, round + 1);
      }
      if (step == 0) continue;
      for (int i = 1; i < group_.size(); ++i) {
        const int peer = (group_.rank() + i) % group_.size();
        absl::Status shown = group_.Await(HostGroup::kStaged, peer, round);
        if (!shown.ok()) return shown;
        Fetch(peer, group_.copy_stage(peer, round - 1), {on_shelf_ + (step - 1) * piece_, piece_});
      }
      group_.Advance(HostGroup::kDone, round);
    }
    group_.AddRounds(rounds);
    return absl::OkStatus();
  }

  // Where `shower` shows `reader` its part.
  size_t Place(int shower, int reader, size_t piece) const {
    return (reader < shower ? reader : reader - 1) * piece;
  }
  void Show(std::byte* room, Portion portion) const {
    for (int peer = 0; peer < group_.size(); ++peer) {
      if (peer == group_.rank()) continue;
      CopyOut(room + Place(group_.rank(), peer, portion.count), sources_[peer] + portion.begin,
              portion.Of(args_.send_bytes[peer]), false);
    }
  }
  void Fetch(int peer, const std::byte* room, Portion portion) const {
    CopyOut(destinations_[peer] + portion.begin, room + Place(peer, group_.rank(), portion.count),
            portion.Of(args_.receive_bytes[peer]), streams_);
  }

  HostGroup& group_;
  const AlltoallArgs& args_;
  const bool streams_;
  size_t on_shelf_;  // bytes for each rank on the shelf
  size_t piece_;     // in a stage
  absl::InlinedVector<const std::byte*, 16> sources_;
  absl::InlinedVector<std::byte*, 16> destinations_;
};

}  // namespace

absl::Status StagedAlltoall(HostGroup& group, const AlltoallArgs& args,
                            const StagedOptions& options) {
  return Alltoall(group, args, options).Run();
}

}  // namespace hvd::rt
