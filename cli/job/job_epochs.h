// SPDX-License-Identifier: Apache-2.0
// The job's epochs as the driver sees them: who is in which, how they are met, and who is told when
// one cannot be. Pure. Once the job is being stopped nothing happens here any more, which is its
// caller's to know.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/job/job_rendezvous.h"
#include "cli/job/members.h"
#include "cli/job/outbox.h"
#include "cli/report/verdict.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

class JobEpochs {
 public:
  // Both outlive it.
  JobEpochs(const JobFacts* facts, Outbox* outbox);

  const Members& members() const { return members_; }
  // Since when ranks wait for others that have not called hvd_init yet, and for whom; see
  // JobRendezvous.
  double waiting_since() const { return rendezvous_.waiting_since(); }
  std::string Missing() const { return rendezvous_.Missing(); }

  // Proposes the next epoch. It is done before any member asks: a member that asks is answered by
  // its own host.
  void Propose();
  // Somebody else has chosen the next: this one. From now on the facts' topology is its.
  void Adopt(const v1::EpochPropose& propose);
  // To the hosts of the newest epoch but `but` (-1: to all of them).
  void SendToEpoch(const v1::Command& command, int but = -1);
  // A member has been through the newest epoch that it knows, or was refused it, and waits.
  void Stands(const v1::MemberStands& stands);
  void Joined(int rank, uint64_t epoch, double now);
  // It has taken its join back, and is waited for again.
  void Withdrawn(const v1::MemberWithdrew& withdrew);
  void Collect(int host, const v1::HostAddresses& addresses);
  // True: the last one was, and the epoch has started.
  bool Ready(int host, uint64_t epoch);
  // The places in the newest epoch of hosts whose ranks run.
  std::vector<int> RunningPlaces() const;
  // The epoch is over, and `host` knows; the first cause of an epoch's abort is the one that
  // counts.
  void TellAborted(int host, uint64_t epoch, const std::string& cause);
  // The rank has ended and comes to no later epoch: who waits for it there is told. (On its own
  // host hvdd says so.)
  void Gone(int rank, const std::string& why);

 private:
  void EndUnstartable(int gone);

  const JobFacts* const facts_;
  Outbox* const outbox_;
  Members members_;
  JobRendezvous rendezvous_;
  uint64_t told_aborted_ = 0;      // the newest epoch whose abort the other hosts have been told
  std::vector<std::string> gone_;  // by rank: why it comes to no other epoch; empty: it may
};

}  // namespace hvd::cli
