// SPDX-License-Identifier: Apache-2.0
// How a daemon is started on a host: argv of the remote shell, or of hvdd itself. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/front/words/run_options.h"

namespace hvd::cli {

// A host that is to be reached.
struct HostTarget {
  HostSlots host;
  bool is_local = false;  // this machine: without a remote shell
};
// Returns the target for the host with this index of options.topology.hosts().
HostTarget TargetOf(const RunOptions& options, int host);

struct DaemonStart {
  std::string marker;           // see proto/hello.h
  std::string own_hvdd;         // where hvdrun's own hvdd lies: tried first on every host
  bool own_hvdd_exists = true;  // here; a local host falls back to PATH and --prefix otherwise
};

// Places that a host is searched for hvdd, in order, in words for messages.
std::string WhereHvddIsSought(const RunOptions& options, const DaemonStart& start);

// The command string for a host's login shell, whichever that is.
std::string RemoteCommand(const RunOptions& options, const DaemonStart& start);

// The words that ssh and its tools get from a person for that host: "-p 2222 -i key me@host1".
std::string SshTarget(const RunOptions& options, const HostTarget& target);

// How a person logs in there: "ssh -p 2222 -i key me@host1", "AGENT me@host1".
std::string LoginCommand(const RunOptions& options, const HostTarget& target);

// The name of the program that gets there: "ssh" or the agent's first word; empty: none, the host
// is here.
std::string ShellName(const RunOptions& options, const HostTarget& target);

// How it is reached, as one would say it: "ssh -p 2222 me@host1 hvdd", "hvdd" here.
std::string ShortCommand(const RunOptions& options, const HostTarget& target);

absl::StatusOr<std::vector<std::string>> DaemonArgv(const RunOptions& options,
                                                    const DaemonStart& start,
                                                    const HostTarget& target);

}  // namespace hvd::cli
