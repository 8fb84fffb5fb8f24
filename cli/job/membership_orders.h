// SPDX-License-Identifier: Apache-2.0
// What the membership wants, as commands to hosts and as facts. Pure, one thread.
#pragma once

#include <string>
#include <vector>

#include "cli/job/job_book.h"
#include "cli/job/job_epochs.h"
#include "cli/job/job_roll.h"
#include "cli/job/job_stop.h"
#include "cli/membership/membership.h"
#include "hostfile/host_slots.h"

namespace hvd::cli {

class MembershipOrders {
 public:
  // All of them outlive it.
  struct Parts {
    JobBook* book;
    JobStop* stop;
    JobRoll* roll;
    JobEpochs* epochs;
    Membership* membership;
  };
  explicit MembershipOrders(const Parts& parts) : parts_(parts) {}

  // All hosts that may be reached from now on.
  void Listed(const std::vector<HostSlots>& hosts) { discovered_ = hosts; }
  // Carries out what the membership wants by now, in order: what an action brings about comes
  // behind those that are known already.
  void CarryOut(double now);
  // The others go on without the host. Its link ends, so that its ranks do.
  void LoseHost(int host, const std::string& cause, double now);
  // The same of one whose link lives until the last words of its ranks have come.
  void TakeHostOut(int host, const std::string& cause, double now);

 private:
  void CarryOut(MembershipAction action, double now);
  void Reach(const MembershipAction& action, double now);
  void ForgetReplaced();
  void Spawn(const MembershipAction& action);
  void Retire(const MembershipAction& action);
  void StopHost(const MembershipAction& action, double now);
  void Propose(const v1::EpochPropose& propose);
  void End(const MembershipAction& action, double now);

  const Parts parts_;
  std::vector<HostSlots> discovered_;
  bool carries_out_ = false;
};

}  // namespace hvd::cli
