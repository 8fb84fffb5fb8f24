// SPDX-License-Identifier: Apache-2.0
// Which of two ways is the faster on this machine: found by trying both in the first calls.
//
// Pure. All ranks feed it the same times, so all come to the same choice.
#pragma once

#include <array>
#include <cstdint>

namespace hvd::rt {

enum class Way { kStaged, kPeerReads };

class WayTrial {
 public:
  // The way of the next call: one, then the other, while nothing is decided.
  Way next() const;
  bool decided() const { return calls_ == kCalls; }
  // Adds the time that the slowest rank took for a call by next().
  void Add(int64_t ns);

 private:
  // Calls until it is decided; the best time of each way counts, for much else may slow a call.
  static constexpr int kCalls = 6;

  void Decide(Way way);

  int calls_ = 0;
  Way chosen_ = Way::kStaged;
  std::array<int64_t, 2> best_ns_ = {INT64_MAX, INT64_MAX};
};

}  // namespace hvd::rt
