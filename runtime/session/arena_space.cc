// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/arena_space.h"

#include <algorithm>
#include <iterator>

namespace hvd::rt {
namespace {

uint64_t Up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

uint64_t Alignment(uint64_t bytes) {
  if (bytes >= ArenaSpace::kHugePage) return ArenaSpace::kHugePage;
  return bytes >= ArenaSpace::kPage ? ArenaSpace::kPage : ArenaSpace::kLine;
}

}  // namespace

ArenaSpace::ArenaSpace(uint64_t bytes) : bytes_(bytes / kPage * kPage) {
  if (bytes_ > 0) AddFree({0, bytes_});
}

void ArenaSpace::AddFree(Range range) {
  free_[range.offset] = range.bytes;
  by_length_.insert({range.bytes, range.offset});
}

void ArenaSpace::DropFree(std::map<uint64_t, uint64_t>::iterator at) {
  by_length_.erase({at->second, at->first});
  free_.erase(at);
}

std::optional<uint64_t> ArenaSpace::Take(uint64_t asked) {
  if (asked > bytes_) return std::nullopt;
  const uint64_t alignment = Alignment(asked);
  // Whole pages belong to one large piece, so that they can be given back.
  const uint64_t bytes = Up(std::max<uint64_t>(asked, 1), std::min(alignment, kPage));
  for (auto fit = by_length_.lower_bound({bytes, 0}); fit != by_length_.end(); ++fit) {
    const Range hole{fit->second, fit->first};
    const uint64_t start = Up(hole.offset, alignment);
    const uint64_t skipped = start - hole.offset;
    if (skipped + bytes > hole.bytes) continue;
    DropFree(free_.find(hole.offset));
    if (skipped > 0) AddFree({hole.offset, skipped});
    if (skipped + bytes < hole.bytes) AddFree({start + bytes, hole.bytes - skipped - bytes});
    taken_[start] = bytes;
    taken_bytes_ += bytes;
    return start;
  }
  return std::nullopt;
}

std::optional<ArenaSpace::Range> ArenaSpace::Give(uint64_t offset) {
  const auto found = taken_.find(offset);
  if (found == taken_.end()) return std::nullopt;
  const Range given{offset, found->second};
  taken_.erase(found);
  taken_bytes_ -= given.bytes;
  Range merged = given;
  auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == merged.offset) {
      merged = {before->first, before->second + merged.bytes};
      DropFree(before);
    }
  }
  if (after != free_.end() && after->first == given.offset + given.bytes) {
    merged.bytes += after->second;
    DropFree(after);
  }
  AddFree(merged);
  return given;
}

}  // namespace hvd::rt
