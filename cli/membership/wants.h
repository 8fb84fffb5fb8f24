// SPDX-License-Identifier: Apache-2.0
// What the membership wants done, when it is to be looked at again, and whether the job has come to
// its end. The last failures are kept for that end's words. Pure.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cli/membership/actions.h"

namespace hvd::cli {

class Wants {
 public:
  // All is looked at anew: what is to wake us is said again.
  void Begin() { deadline_ = std::numeric_limits<double>::infinity(); }
  // A time that has come needs no waking: what it brings about has been looked at.
  void WakeAt(double when, double now) {
    if (when > now) deadline_ = std::min(deadline_, when);
  }
  double deadline() const { return deadline_; }

  void Add(MembershipAction action) { actions_.push_back(std::move(action)); }
  void Say(std::string text) { Add({MembershipAction::kSay, -1, std::move(text)}); }
  std::vector<MembershipAction> Take() { return std::exchange(actions_, {}); }

  // Hosts that cannot be reached fail as long as the job runs, so that only the last are kept.
  void NoteFailure(std::string text);

  struct EndWords {
    std::string why;
    std::string more = {};  // lines behind the last failures
  };
  // The job ends; `member` is to blame (0: none).
  void End(MembershipEnd end, uint64_t member, const EndWords& words);
  bool ended() const { return ended_; }

 private:
  std::vector<MembershipAction> actions_;
  std::vector<std::string> failures_;
  bool ended_ = false;
  double deadline_ = std::numeric_limits<double>::infinity();
};

}  // namespace hvd::cli
