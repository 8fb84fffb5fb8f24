// SPDX-License-Identifier: Apache-2.0
// Which commit comes next, into which file, and what the ranks' agreement on one means. Pure: a
// value, driven by State and by the simulator.
//
// Two files take commits by turns. Number k is begun only when k - 1 is complete everywhere; so
// while k is written, nobody needs what it overwrites (k - 2), and k - 1 lies untouched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hvd::rt {

// The words of a rank in an agreement; all ranks' maximum comes back.
using AgreementWords = std::array<int64_t, 5>;

struct AgreementSide {
  // The point that this rank is at: a commit's number; kChecks: none, it only looks whether the
  // members are to change; kFailed: it could not write its part.
  int64_t number = 0;
  uint64_t layout = 0;     // of a commit: StateLayout::hash
  bool is_change = false;  // this rank's host has been told of a change
};
inline constexpr int64_t kChecks = 0;
inline constexpr int64_t kFailed = -1;

enum class AgreementVerdict {
  kAgreed,   // it is complete everywhere; or there is nothing to tell
  kChange,   // the same, and the members are to change
  kDiffers,  // the ranks are not at the same; nothing counts
};
struct Agreement {
  AgreementVerdict verdict = AgreementVerdict::kAgreed;
  std::string why;  // of kDiffers
};

AgreementWords WordsOf(const AgreementSide& side);
Agreement ReadAgreement(const AgreementWords& all);

// Whose doing a commit is. The job gets on by the program's own only: each epoch has a sync.
enum class CommitBy { kProgram, kSync };

class CommitBook {
 public:
  // The commit that all ranks go on from; 0: there is none.
  void GoOnFrom(uint64_t number) { complete_ = number; }
  uint64_t complete() const { return complete_; }
  uint64_t next() const { return complete_ + 1; }
  // Learns that so many commits of the program's own led to complete().
  void Learn(uint64_t steps) { steps_ = steps; }
  uint64_t steps() const { return steps_; }
  // Likewise to next().
  uint64_t NextSteps(CommitBy by) const { return steps_ + (by == CommitBy::kProgram ? 1 : 0); }
  // Takes in what all ranks have said of commit next().
  void Hear(const Agreement& agreement, CommitBy by) {
    if (agreement.verdict == AgreementVerdict::kDiffers) return;
    ++complete_;
    steps_ = NextSteps(by);
  }
  static size_t FileOf(uint64_t number) { return static_cast<size_t>(number % 2); }

 private:
  uint64_t complete_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace hvd::rt
