// SPDX-License-Identifier: Apache-2.0
// The word of one entry of the readiness board: everything that marking reads and changes at once.
// Pure.
//
// A rank marks by adding to the counts; the add that makes the entry complete also takes the counts
// away and claims the completion, so that exactly one rank has it.
#pragma once

#include <cstdint>

namespace hvd::rt {

class MarkWord {
 public:
  // One rank more: that asks for what was agreed last (kArrived alone), for something new, with its
  // buffers in its arena, or one that has joined and will take whatever comes.
  static constexpr uint64_t kArrived = 1ull;
  static constexpr uint64_t kChanged = 1ull << 8;
  static constexpr uint64_t kBuffered = 1ull << 16;
  static constexpr uint64_t kNeutral = 1ull << 24;
  // Claimed and not in the log yet.
  static constexpr uint64_t kInFlight = 1ull << 32;
  // Flips with each completion: which of its two places a rank's values are in.
  static constexpr uint64_t kRun = 1ull << 33;
  // Grows when the entry changes its name or what was agreed for it; a rank that remembers an older
  // one has to look again. It has 30 bits and may wrap: a change takes a run of the entry, in which
  // every rank marks it and looks again. A rank is therefore at most two changes behind; a rank
  // that has joined, and marks nothing, remembers nothing (Board::Join).
  static constexpr uint64_t kVersion = 1ull << 34;

  explicit MarkWord(uint64_t bits) : bits_(bits) {}
  uint64_t bits() const { return bits_; }

  int arrived() const { return bits_ & 0xff; }
  int changed() const { return bits_ >> 8 & 0xff; }
  int buffered() const { return bits_ >> 16 & 0xff; }
  int neutral() const { return bits_ >> 24 & 0xff; }
  int asked() const { return arrived() - neutral(); }  // ranks that have submitted it themselves
  bool in_flight() const { return (bits_ & kInFlight) != 0; }
  int run() const { return bits_ >> 33 & 1; }
  uint32_t version() const { return static_cast<uint32_t>(bits_ >> 34); }

  // Everybody has marked it, and somebody wants it.
  bool IsComplete(int local_size) const { return arrived() == local_size && asked() > 0; }
  MarkWord Claimed() const { return MarkWord(((bits_ & ~kCounts) | kInFlight) ^ kRun); }
  MarkWord WithoutNeutral() const {
    return MarkWord(bits_ - static_cast<uint64_t>(neutral()) * (kNeutral + kArrived));
  }
  // For a new name, for which `neutral` ranks are ready.
  MarkWord Renamed(int neutral) const {
    return MarkWord(((bits_ & ~kCounts) + kVersion) |
                    static_cast<uint64_t>(neutral) * (kNeutral + kArrived));
  }

 private:
  static constexpr uint64_t kCounts = 0xffffffffull;
  uint64_t bits_;
};

}  // namespace hvd::rt
