// SPDX-License-Identifier: Apache-2.0
// The hosts that a scheduler or an operator has given us, as its variables and files tell. Pure but
// for the files, which FrontWorld reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/front/world.h"
#include "hostfile/host_slots.h"

namespace hvd::cli {

struct Allocation {
  std::string manager;  // "Slurm job 7"; empty: there is none
  std::string source;   // "Slurm job 7 ($SLURM_JOB_NODELIST)", for people
  std::vector<HostSlots> hosts;
  std::string agent = {};     // by which its manager starts something on them; empty: ssh
  std::string hostfile = {};  // in the form of ours, and kept up to date by the operator; or empty
  // A command line for the shell that asks the manager which of its hosts the job may use now, and
  // prints a name a line; empty: it cannot be asked.
  std::string look = {};
  bool shell_is_outside = false;  // this process has none of the job's cores and GPUs
  int cores_per_rank = 0;         // as many as its manager gives to each; 0: not said
  int unstated_slots = 1;         // of a host for which that states none
  int end_notice = 0;  // the signal by which its manager tells that it will kill the job; 0: none
};

// Nothing when this process is in no allocation. InvalidArgument, with the next step, when what is
// told makes no list of hosts: this host alone would not be what the person has asked for.
absl::StatusOr<std::optional<Allocation>> FindAllocation(const FrontWorld& world);

// The value of a variable; empty when there is none.
std::string VariableOf(const FrontWorld& world, const std::string& name);

}  // namespace hvd::cli
