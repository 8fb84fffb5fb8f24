// SPDX-License-Identifier: Apache-2.0
// Which bytes of an arena are taken. Pure: offsets in, offsets out; it never looks at the memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace hvd::rt {

class ArenaSpace {
 public:
  // Small pieces begin at a cache line, larger ones at a page, the largest where a huge page can
  // hold them.
  static constexpr uint64_t kLine = 64;
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kHugePage = uint64_t{2} << 20;

  struct Range {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  explicit ArenaSpace(uint64_t bytes);

  // The best fit; nothing when no free range holds it. No bytes take a line, so that every piece
  // has an offset of its own.
  std::optional<uint64_t> Take(uint64_t bytes);
  // The piece that began at `offset`; nothing when none does.
  std::optional<Range> Give(uint64_t offset);

  uint64_t bytes() const { return bytes_; }
  uint64_t taken() const { return taken_bytes_; }
  size_t pieces() const { return taken_.size(); }
  size_t free_ranges() const { return free_.size(); }

 private:
  void AddFree(Range range);
  void DropFree(std::map<uint64_t, uint64_t>::iterator at);

  const uint64_t bytes_;
  uint64_t taken_bytes_ = 0;
  std::map<uint64_t, uint64_t> taken_;                 // offset → bytes
  std::map<uint64_t, uint64_t> free_;                  // offset → bytes; no two touch
  std::set<std::pair<uint64_t, uint64_t>> by_length_;  // (bytes, offset) of the same
};

}  // namespace hvd::rt
