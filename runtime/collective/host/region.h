// SPDX-License-Identifier: Apache-2.0
// Where things lie in the memory that the ranks of one host share for collectives. Everything is
// zero at first, written by one rank alone (but for the stages), and only ever grows: no flag is
// reset, so none can be seen too late.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hvd::rt {

// A rank's word on its latest operation, with the few bytes of a small tensor in the same cache
// line.
struct Arrival {
  static constexpr size_t kPayloadBytes = 56;
  alignas(64) std::atomic<uint64_t> operation{0};
  std::byte payload[kPayloadBytes];
};

// One a rank, written by it alone. A neighbour line is fetched along with a line, so each that is
// waited for has 128 bytes.
struct RankFlags {
  // By the operation's parity: no rank starts operation k+1 before all have started k.
  alignas(128) Arrival arrivals[2];
  // Rounds of the epoch whose ... is done; see HostGroup::Counter.
  alignas(128) std::atomic<uint64_t> staged{0};
  alignas(128) std::atomic<uint64_t> done{0};
};

class HostRegion {
 public:
  static constexpr size_t kShelfBytes = size_t{128} << 10;
  // Stages of a rank: rounds in flight. A reduction's are read and written by both sides and should
  // stay in the cache: two do, since a round is collected before its stage is needed again. Copies
  // go one way, and whoever shows may run ahead.
  static constexpr int kReduceStages = 2;
  static constexpr int kCopyStages = 4;
  static constexpr size_t kMinSliceBytes = size_t{8} << 10;

  HostRegion(void* base, int size) : base_(static_cast<std::byte*>(base)), size_(size) {}

  RankFlags& flags(int rank) const { return reinterpret_cast<RankFlags*>(base_)[rank]; }
  // A small tensor of operation `operation`.
  std::byte* shelf(int rank, uint64_t operation) const {
    return base_ + ShelvesAt(size_) + (uint64_t{2} * rank + operation % 2) * kShelfBytes;
  }
  // The bytes that `rank` shows the others in `round` of a reduction or of copies.
  std::byte* reduce_stage(int rank, uint64_t round) const {
    return stage(rank, round % kReduceStages);
  }
  std::byte* copy_stage(int rank, uint64_t round) const {
    return stage(rank, kReduceStages + round % kCopyStages);
  }
  static size_t StageBytes(int size) {
    return std::max(size_t{1} << 20, static_cast<size_t>(size) * kMinSliceBytes);
  }
  static size_t Bytes(int size) {
    return StagesAt(size) + size_t{kStages} * size * StageStride(size);
  }

 private:
  static constexpr int kStages = kReduceStages + kCopyStages;

  std::byte* stage(int rank, uint64_t index) const {
    return base_ + StagesAt(size_) + (uint64_t{kStages} * rank + index) * StageStride(size_);
  }
  // Not a multiple of a page: who sums reads the same place of all ranks' stages at once, and what
  // is a multiple of 4 KB apart shares few lines of a first-level cache.
  static size_t StageStride(int size) { return StageBytes(size) + 64; }
  static size_t ShelvesAt(int size) { return (size * sizeof(RankFlags) + 4095) / 4096 * 4096; }
  static size_t StagesAt(int size) { return ShelvesAt(size) + size_t{2} * size * kShelfBytes; }

  std::byte* base_;
  int size_;
};

}  // namespace hvd::rt
