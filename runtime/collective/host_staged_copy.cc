#include <algorithm>
#include <cstring>

#include "runtime/collective/host_paths.h"

namespace hvd {
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
  if (absl::Status free = group.AwaitStage(round); !free.ok()) return free;
  if (bytes > 0) memcpy(group.stage(group.rank(), round), data, bytes);
  group.Advance(HostGroup::kStaged, round + 1);
  return absl::OkStatus();
}

// Fetches what every other rank shows in `round`, and counts itself done.
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
  group.Advance(HostGroup::kDone, round + 1);
  return absl::OkStatus();
}

}  // namespace

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
    group.Advance(HostGroup::kDone, round + 1);
  }
  group.AddRounds(rounds);
  return absl::OkStatus();
}

}  // namespace hvd
