// SPDX-License-Identifier: Apache-2.0
// What follows for the others when a host or a rank comes, fails or ends: the part in which a job
// whose members stay differs from one whose members come and go. A job has one of the two, from its
// beginning. Pure, one thread. Once the job is being stopped nothing is asked here that would begin
// something new.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "cli/job/stall/stall_book.h"
#include "hostfile/host_slots.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

class Crew {
 public:
  virtual ~Crew() = default;

  // Whether members are replaced, now: a fault of one is no end of the job's then.
  virtual bool changes() const { return false; }
  virtual double deadline() const { return std::numeric_limits<double>::infinity(); }
  virtual void Tick(double /*now*/) {}

  // Hosts.
  virtual void Listed(const std::vector<HostSlots>& /*hosts*/, double /*now*/) {}
  virtual void HostGreeted(int host, double now) = 0;
  // It is lost, or could not be had, and the others go on without it.
  virtual void LoseHost(int /*host*/, const std::string& /*cause*/, double /*now*/) {}
  // It has stopped, and the others go on.
  virtual void HostStopped(int /*host*/, double /*now*/) {}
  virtual void DrainAsked(int /*host*/, const std::string& /*cause*/, double /*now*/) {}
  // Nothing passes between these hosts, as one of them says: `why`.
  virtual void Unreached(int /*host*/, int /*other*/, uint64_t /*epoch*/,
                         const std::string& /*why*/) {}

  // Ranks, by the index of their facts.
  virtual void Joined(int /*rank*/, uint64_t /*epoch*/, double /*now*/) {}
  virtual void Stands(const v1::MemberStands& stands, double now) = 0;
  virtual void Died(int rank, const v1::MemberDied& died, double now) = 0;
  // Its whole end is told, and is among the facts.
  virtual void Exited(int /*rank*/, const v1::RankExited& /*exit*/, double /*now*/) {}
  // It has ended with code 0, and nobody takes its place.
  virtual void EndedWell(int /*rank*/) {}
  // Asked while members are replaced.
  virtual void ReplaceBroken(int /*rank*/, const v1::RankBroke& /*broke*/, double /*now*/) {}
  virtual void InitFailed(int /*rank*/, double /*now*/) {}
  // A rank that has left has aborted its epoch for `cause`.
  virtual void Left(int host, const v1::RankLeft& left, const std::string& cause, double now) = 0;

  // Epochs.
  virtual void Addresses(int host, const v1::HostAddresses& addresses) = 0;
  virtual void Ready(int host, uint64_t epoch, double now) = 0;
  virtual void Quiet(int /*host*/, const v1::HostQuiet& /*quiet*/, double /*now*/) {}

  // Ranks for whom others wait outside any collective.
  virtual std::vector<AwaitedRank> Awaited(double /*now*/) const { return {}; }
  // False: neither a rank that can be replaced nor a link is to blame, so another epoch would be no
  // better.
  virtual bool ReplaceStalled(const StallBook::Report& /*stall*/, double /*now*/) { return false; }
};

// As much of a rank's end as is known before its output has ended.
v1::RankExited ExitOf(const v1::MemberDied& died);

}  // namespace hvd::cli
