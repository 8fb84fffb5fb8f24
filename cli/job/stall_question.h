// SPDX-License-Identifier: Apache-2.0
// A stall as the driver tells it: a host says that it is time, all are asked what they wait for,
// and their answers make one text. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/job/outbox.h"
#include "cli/job/stall/stall_book.h"
#include "hostfile/topology.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

struct StallLimits {
  double warn_s = 0;   // 0: nobody looks
  double abort_s = 0;  // 0: never
};

class StallQuestion {
 public:
  // Both outlive it.
  StallQuestion(const Topology* topology, StallLimits limits, Outbox* outbox)
      : limits_(limits), outbox_(outbox), book_(topology) {}

  bool asking() const { return book_.asking(); }
  double deadline() const { return deadline_; }  // for the hosts' answers, while asking

  // A host says that some tensor waits too long. One question is enough for all that tell of it.
  void Due(double now);
  // `alive`: the hosts that can answer. True: all of them have.
  bool Answered(int host, const v1::HostPending& pending, const std::vector<int>& alive);
  // Ends the question and warns the person. Returns the report that the job must end for, if it
  // must.
  std::optional<StallBook::Report> Tell(double now, const std::vector<AwaitedRank>& awaited = {});

 private:
  const StallLimits limits_;
  Outbox* const outbox_;
  StallBook book_;
  double deadline_ = 0;
  bool again_ = false;  // another host has noticed one meanwhile
};

}  // namespace hvd::cli
