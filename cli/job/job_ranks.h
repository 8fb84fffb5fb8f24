// SPDX-License-Identifier: Apache-2.0
// Ranks: their starts, their deaths and their ends. When one dies, or leaves, while others wait for
// it, the other hosts are told at once; who is to blame is judged later, from the ranks' whole ends
// (RankExited). Pure, one thread.
#pragma once

#include <string>

#include "cli/job/crew.h"
#include "cli/job/job_book.h"
#include "cli/job/job_roll.h"
#include "cli/job/job_stop.h"
#include "cli/job/members.h"

namespace hvd::cli {

class JobRanks {
 public:
  // All of them outlive it.
  struct Parts {
    JobBook* book;
    JobStop* stop;
    JobRoll* roll;
    Crew* crew;
    const Members* members;
  };
  explicit JobRanks(const Parts& parts) : parts_(parts) {}

  void Started(const v1::RankStarted& started);
  void Died(const v1::MemberDied& died, double now);
  void Exited(const v1::RankExited& exit, double now);
  void Broke(const v1::RankBroke& broke, double now);
  void InitFailed(const v1::RankInitFailed& failed, double now);
  void Joined(const v1::RankJoined& joined, double now);
  // `host`: whose rank it was.
  void Left(int host, const v1::RankLeft& left, double now);
  void GraceAsked(const v1::GraceAsked& asked);

  // "; hvd_init of rank 1 on host0 failed: …" of those that still run.
  std::string InitFailures() const;

 private:
  void NoteExit(int rank, const v1::RankExited& exit, double now);
  void JudgeExit(int rank, double now);
  void FailedExit(int rank, double now);
  void NoteCause(uint64_t epoch, uint32_t rank);
  std::string NoteUnreached(int host, uint64_t epoch, uint32_t rank, std::string cause);
  bool CauseRuns() const;
  bool OthersNeeded(int rank) const;
  JobFacts& facts() const { return parts_.book->facts; }

  const Parts parts_;
};

}  // namespace hvd::cli
