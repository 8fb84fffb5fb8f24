// SPDX-License-Identifier: Apache-2.0
// Deaths that nobody has asked for: whose fault each is, what too many of them bring about, and
// whether the job gets on in between. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "cli/membership/epochs.h"
#include "cli/membership/faults/program_bug.h"
#include "cli/membership/faults/progress.h"
#include "cli/membership/roster.h"
#include "cli/membership/shares.h"
#include "cli/membership/wants.h"

namespace hvd::cli {

class Deaths {
 public:
  // All of them outlive it.
  struct Parts {
    Roster* roster;
    const Epochs* epochs;
    Shares* shares;
    Wants* wants;
  };
  // `np`: so many ranks make the first epoch.
  Deaths(int np, const Parts& parts) : np_(np), parts_(parts) {}

  void Count(uint64_t member, const MemberEnd& end, double now);
  // What a host has complete: the job may have got on.
  void NoteCommit(const KeptCommits& kept);

  // The job ends since ranks are missing. Where one fails each time, that one is to blame.
  void EndTooFew(const std::string& text);
  // The job ends since nobody is left who has what was committed.
  void EndWithoutState();

 private:
  // The last whose share or host is left out for its deaths, until the job gets on.
  struct Culprit {
    uint64_t member = 0;   // 0: there is none
    bool outside = false;  // it was somebody else's doing
    std::string what;
  };

  bool IsBug(const DeathSeen& seen, uint64_t member, const MemberEnd& end);
  bool NoteFailedStart(uint64_t member, const MemberEnd& end, double now);
  bool MayBeTheProgram(int host);

  const int np_;
  const Parts parts_;
  ProgramBug bug_;
  Progress progress_;
  Culprit culprit_;
};

}  // namespace hvd::cli
