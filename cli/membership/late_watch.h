// SPDX-License-Identifier: Apache-2.0
// Ranks that others wait for in vain: those that hold up the next epoch, and those that never come
// to the first. They are named, and then replaced. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/front/words/run_options.h"
#include "cli/membership/deaths.h"
#include "cli/membership/epochs.h"
#include "cli/membership/roster.h"
#include "cli/membership/staying.h"
#include "cli/membership/wants.h"

namespace hvd::cli {

// A member of the newest epoch whom others wait for outside any collective, and since when.
struct AwaitedMember {
  uint64_t member = 0;
  double since = 0;
  std::string by;  // "the next epoch"
};

class LateWatch {
 public:
  // All of them outlive it.
  struct Parts {
    const ElasticOptions* options;
    Roster* roster;
    Epochs* epochs;
    Staying* staying;
    Deaths* deaths;
    Wants* wants;
  };
  explicit LateWatch(const Parts& parts) : parts_(parts) {}

  // A member stands: from the first on others are waited for.
  void Stood(double now) {
    if (first_stood_at_ < 0) first_stood_at_ = now;
  }
  bool any_stood() const { return first_stood_at_ >= 0; }

  void Look(double now);
  std::vector<AwaitedMember> WhoIsAwaited() const;
  // How many the first epoch does not wait for any longer.
  int CountOverdue(double now);
  // "1 rank on host1 has not called hvd.init()"; empty: all have.
  std::string SayUncome() const;
  // Tells a person once that the first epoch begins without these.
  void SayBeginsWithout();

 private:
  void LookAtStart(double now);
  void LookAtBroken(double now);
  void LookAtUncome(double now);
  void Replace(uint64_t member);
  void ReplaceUncome(uint64_t member, double now);
  bool IsAwaited(const RosterMember& member) const;
  std::vector<std::string> WhoIsLate() const;
  void SayLate(double since, double now);
  double AwaitedFrom(const RosterMember& member) const;

  const Parts parts_;
  double first_stood_at_ = -1;   // the job's first member has come; below 0: none has
  bool begins_without_ = false;  // a person has been told
};

}  // namespace hvd::cli
