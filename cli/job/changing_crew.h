// SPDX-License-Identifier: Apache-2.0
// The crew of a job whose members come and go: what happens is told to the membership, and what
// that wants is carried out. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/job/crew.h"
#include "cli/job/job_book.h"
#include "cli/job/job_epochs.h"
#include "cli/job/job_roll.h"
#include "cli/job/job_stop.h"
#include "cli/job/membership_orders.h"
#include "cli/membership/membership.h"

namespace hvd::cli {

class ChangingCrew : public Crew {
 public:
  // All of them outlive it.
  struct Parts {
    JobBook* book;
    JobStop* stop;
    JobRoll* roll;
    JobEpochs* epochs;
  };
  // `options`: of the policy.
  ChangingCrew(const Parts& parts, const ElasticOptions& options);

  // False once the members of the last epoch have ended well together, or the job is being stopped:
  // then it is as one whose members stay.
  bool changes() const override { return !membership_.closed() && !parts_.stop->begun(); }
  double deadline() const override { return membership_.deadline(); }
  void Tick(double now) override;

  void Listed(const std::vector<HostSlots>& hosts, double now) override;
  void HostGreeted(int host, double now) override;
  void LoseHost(int host, const std::string& cause, double now) override;
  void HostStopped(int host, double now) override;
  void DrainAsked(int host, const std::string& cause, double now) override;
  void Unreached(int host, int other, uint64_t epoch, const std::string& why) override;

  void Stands(const v1::MemberStands& stands, double now) override;
  void Died(int rank, const v1::MemberDied& died, double now) override;
  void Exited(int rank, const v1::RankExited& exit, double now) override;
  void ReplaceBroken(int rank, const v1::RankBroke& broke, double now) override;
  void InitFailed(int rank, double now) override;
  void Left(int host, const v1::RankLeft& left, const std::string& cause, double now) override;

  void Addresses(int host, const v1::HostAddresses& addresses) override;
  void Ready(int host, uint64_t epoch, double now) override;
  void Quiet(int host, const v1::HostQuiet& quiet, double now) override;

  std::vector<AwaitedRank> Awaited(double now) const override;
  bool ReplaceStalled(const StallBook::Report& stall, double now) override;

 private:
  void EpochStarted(uint64_t epoch, double now);
  bool EndsBySignal(const MemberEnd& end, double now);
  JobFacts& facts() const { return parts_.book->facts; }
  const Members& members() const { return parts_.epochs->members(); }

  const Parts parts_;
  Membership membership_;
  MembershipOrders orders_;
};

}  // namespace hvd::cli
