// SPDX-License-Identifier: Apache-2.0
// The crew of a job whose members stay: all hosts launch together, and who has ended comes to no
// other epoch, which those who wait for it there are told. Pure.
#pragma once

#include <string>

#include "cli/job/crew.h"
#include "cli/job/job_book.h"
#include "cli/job/job_epochs.h"
#include "cli/job/job_roll.h"
#include "cli/job/job_stop.h"

namespace hvd::cli {

class FixedCrew : public Crew {
 public:
  // All of them outlive it.
  struct Parts {
    JobBook* book;
    JobStop* stop;
    JobRoll* roll;
    JobEpochs* epochs;
  };
  explicit FixedCrew(const Parts& parts) : parts_(parts) {}

  void HostGreeted(int host, double now) override;
  void Joined(int rank, uint64_t epoch, double now) override;
  void Stands(const v1::MemberStands& stands, double now) override;
  void Died(int rank, const v1::MemberDied& died, double now) override;
  void EndedWell(int rank) override;
  void Left(int host, const v1::RankLeft& left, const std::string& cause, double now) override;
  void Addresses(int host, const v1::HostAddresses& addresses) override;
  void Ready(int host, uint64_t epoch, double now) override;

 private:
  void Launch();

  const Parts parts_;
};

}  // namespace hvd::cli
