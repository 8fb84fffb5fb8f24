// SPDX-License-Identifier: Apache-2.0
// What all parts of the job's state table share: what the person asked for, what has happened so
// far, and what is to be done. Plain data of the driver's thread.
#pragma once

#include <optional>
#include <string>

#include "cli/front/words/run_options.h"
#include "cli/job/outbox.h"
#include "cli/job/stall_question.h"
#include "cli/report/verdict.h"
#include "proto/deadlines.h"

namespace hvd::cli {

struct JobPolicy {
  double start_timeout_s = 30;
  double lease_s = kDefaultLeaseS;
  double run_timeout_s = 0;  // 0: none
  double grace_s = kDefaultGraceS;
  bool grace_is_given = false;  // by the person: then it counts whatever the ranks ask for
  bool verbose = false;
  bool report_bindings = false;  // say what of its host each rank has
  StallLimits stall = {};
  bool compat_horovod = false;
  int stdin_rank = -1;  // who gets hvdrun's stdin; -1: none, -2: all
  // The options of a job whose members come and go; its first epoch needs `np` ranks.
  std::optional<ElasticOptions> elastic = {};
  int np = 0;
  std::string manager = {};       // "Slurm job 7", within whose allocation this is; may be empty
  std::string adopted_from = {};  // the launcher that has started the ranks; empty: hvdrun
  int end_notice = 0;  // the signal by which the manager tells that it will kill the job; 0: none
};

struct JobBook {
  const JobPolicy policy;
  const double started;  // when the job began, in seconds of the clock
  JobFacts facts;
  Outbox outbox;

  double Since(double now) const { return now - started; }
  const std::string& HostName(int host) const { return facts.hosts[host].name; }
};

}  // namespace hvd::cli
