#include "runtime/collective/host/staged_copy.h"

#include <algorithm>

#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/slices.h"

namespace hvd {

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

}  // namespace hvd
