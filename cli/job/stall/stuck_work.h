// SPDX-License-Identifier: Apache-2.0
// Collectives that have come to a stop although nobody is missing in them, and why. Pure: out of
// what the hosts' daemons see, whatever the ranks are able to say.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hostfile/topology.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

struct StuckWork {
  enum Why {
    kStopped,  // `ranks` are held by the kernel
    kLink,     // what was sent between two hosts does not come
    kSilent,   // `ranks` neither wait nor get on
    kDevice,   // the devices of `ranks` do not finish it
    kEnds,     // others wait in join or shutdown for `ranks`, which the kernel holds
    kUnknown,  // all of `ranks` wait for one another
  } why = kUnknown;
  int set = 0;
  bool executing = false;  // some ranks execute it: nobody waits for its being asked for
  std::string what;        // "allreduce 'grad.3'"
  double still_s = 0;      // for how long nothing of it has come to pass on any host
  std::vector<int> ranks;  // sorted; of kLink: those at both ends
  std::vector<std::pair<int, int>> links;  // hosts, the smaller number first; sorted
};

// The answers of the hosts.
using PendingByHost = std::map<int, v1::HostPending>;

// The process sets in which nothing moves for at least `least_s`, and what devices have worked on
// for as long, whatever else moves.
std::vector<StuckWork> FindStuck(const PendingByHost& answers, const Topology& topology,
                                 double least_s);

}  // namespace hvd::cli
