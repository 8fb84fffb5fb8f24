// SPDX-License-Identifier: Apache-2.0
// What the user asked for, validated: the value that the front (options) gives to the back
// (console, driver, spawner). Pure data.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hostfile/host_slots.h"
#include "hostfile/topology.h"
#include "proto/adoption.h"
#include "proto/deadlines.h"

namespace hvd::cli {

// The fate of ranks when members come or go while all others are well.
enum class MembershipChange {
  kDrain,  // they go on until their next commit or check, and lose nothing
  kNow,    // their epoch ends at once, and they go back to the last commit
};

// The exit code of ElasticOptions::manager_look when the manager's job has ended.
inline constexpr int kJobIsOver = 79;

// A job whose members come and go.
struct ElasticOptions {
  int min_np = 1;
  int max_np = 0;          // 0: as many as there are slots
  int slots_per_host = 0;  // of a host for which none are stated; 0: 1
  std::string discovery_script =
      {};                     // a command line for the shell, which prints the hosts; empty: none
  std::string hostfile = {};  // absolute; looked at again and again; empty: none
  // The same, for the hosts of RunOptions::manager; without slots, which stay as they are planned.
  std::string manager_look = {};
  double discovery_interval_s = 1;
  bool interval_is_given = false;
  // RunOptions' own, which JobState copies: how long a rank that does not come holds up the first
  // epoch.
  double start_timeout_s = 30;
  double elastic_timeout_s =
      600;               // how long too few ranks, or one that does not come, are waited for
  int reset_limit = -1;  // epochs after the first; -1: any number
  // A host that has failed is left alone for the first of these, twice as long the next time, and
  // never longer than the second.
  double cooldown_least_s = 10;
  double cooldown_most_s = 600;
  MembershipChange change = MembershipChange::kDrain;
};

struct RunOptions {
  // Where to run.
  int np = 0;
  std::optional<ElasticOptions> elastic;  // absent: the members stay as they are at the start
  std::vector<HostSlots> hosts;           // of the chosen source, merged
  std::string hosts_source;               // "-H", a hostfile's path, or "localhost"
  Topology topology;  // np ranks placed on `hosts`; its hosts are a prefix-ordered subset of them.
                      // An elastic job has none while it runs: the lists of hosts say where
  std::string manager;             // "Slurm job 7", whose allocation the hosts are of; may be empty
  int end_notice = 0;              // its signal before it kills the job; 0: none
  std::string hosts_note;          // of hosts that nobody has typed: whose they are; may be empty
  std::vector<std::string> notes;  // what became of the hosts as written, a line each
  // For each topology host: its HostSlots (user, port) and whether it is this machine (plain fork).
  std::vector<HostSlots> host_of;
  std::vector<bool> is_local;
  // The same of any host, for those that are found later. May ask the resolver.
  std::function<bool(const HostSlots&)> is_local_host;

  std::optional<Adoption> adoption;  // the ranks run already, started by another launcher

  // How to get there.
  int ssh_port = 0;
  std::string ssh_identity;
  std::string rsh_agent;  // empty: ssh; an agent's name (agents.h); else a command line split by
                          // the shell's rules, host and command appended
  bool agent_is_given = false;  // by the person
  std::string prefix;           // --prefix: where hvd is installed on the hosts; empty: see spawner
  double start_timeout_s = 30;
  bool waits_for_hosts = false;  // that are not there yet, for so long
  double run_timeout_s = 0;      // --timeout; 0 none
  double lease_s = kDefaultLeaseS;
  double grace_s = kDefaultGraceS;
  bool grace_is_given = false;  // by the person, so no program asks for another
  int containment = 0;  // hvd.v1.Containment's values: 0 auto, 1 namespace, 2 cgroup, 3 subreaper

  // The workers get these.
  std::vector<std::string> command;
  std::vector<std::string> environment;      // filtered; NAME=VALUE, -x applied
  std::vector<std::string> own_environment;  // names given by -x
  std::string directory;
  int stdin_rank = 0;  // -1 none, -2 all
  bool binds_cores = true;
  int most_cores = 0;  // of a rank, as the manager of the allocation says; 0: it does not
  std::optional<int> gpus_per_rank;  // 0: CUDA_VISIBLE_DEVICES is left alone
  bool compat_horovod = false;       // a Python that imports horovod gets hvd

  // These decide what the user sees.
  int verbose = 0;               // 1: what hvdrun does; 2: with whole command lines
  std::string output_directory;  // absolute; empty none
  bool files_here = false;       // hvdrun writes the ranks' files there itself, on this host
  bool timestamps = false;
  bool report_bindings = false;  // say which cores and GPUs each rank has
  std::string timeline_path;     // absolute; empty none
  double stall_warn_s = 0;       // 0: nobody looks
  double stall_abort_s = 0;      // 0: never
};

}  // namespace hvd::cli
