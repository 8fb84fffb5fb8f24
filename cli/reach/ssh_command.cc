// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/ssh_command.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "cli/front/words/agents.h"
#include "cli/front/words/shell_words.h"

namespace hvd::cli {
namespace {

// $1: hvdrun's own hvdd, $2: the one under --prefix (either may be empty), then hvdd's arguments.
// Holds no single quote, backslash, exclamation mark or newline, so that every login shell passes
// it on.
constexpr const char* kFindAndRun =
    "a=$1; b=$2; shift 2; echo hvdrun-is-logged-in; "
    "if [ -n \"$a\" ] && [ -x \"$a\" ]; then exec \"$a\" \"$@\"; fi; "
    "c=$(command -v hvdd) && exec \"$c\" \"$@\"; "
    "if [ -n \"$b\" ] && [ -x \"$b\" ]; then exec \"$b\" \"$@\"; fi; "
    "echo \"hvdd-not-found: PATH=$PATH\" >&2; exit 127";

std::vector<std::string> HvddArguments(const RunOptions& options, const DaemonStart& start) {
  static constexpr const char* kLevels[] = {"auto", "namespace", "cgroup", "subreaper"};
  std::vector<std::string> arguments = {"--marker", start.marker};
  if (options.containment > 0 && options.containment < 4) {
    arguments.push_back("--containment");
    arguments.push_back(kLevels[options.containment]);
  }
  return arguments;
}

std::string PrefixHvdd(const RunOptions& options) {
  return options.prefix.empty() ? "" : absl::StrCat(options.prefix, "/bin/hvdd");
}

std::string SshDestination(const HostSlots& host) {
  return host.user.empty() ? host.name : absl::StrCat(host.user, "@", host.name);
}

std::vector<std::string> SshArgv(const RunOptions& options, const HostSlots& host) {
  // A little less than our own patience, so that ssh's words come before ours.
  const int patience = std::max(1, static_cast<int>(std::ceil(options.start_timeout_s)) - 1);
  std::vector<std::string> argv = {"ssh", "-T", "-x"};
  for (const char* option :
       {"BatchMode=yes", "ControlMaster=no", "ControlPath=none", "RemoteCommand=none",
        "ClearAllForwardings=yes", "PermitLocalCommand=no"}) {
    argv.push_back("-o");
    argv.push_back(option);
  }
  argv.push_back("-o");
  argv.push_back(absl::StrCat("ConnectTimeout=", patience));
  const int port = host.port != 0 ? host.port : options.ssh_port;
  if (port != 0) {
    argv.push_back("-p");
    argv.push_back(std::to_string(port));
  }
  if (!options.ssh_identity.empty()) {
    argv.push_back("-i");
    argv.push_back(options.ssh_identity);
  }
  argv.push_back("--");
  argv.push_back(SshDestination(host));
  return argv;
}

std::vector<std::string> LocalArgv(const RunOptions& options, const DaemonStart& start) {
  std::vector<std::string> argv = {start.own_hvdd};
  if (!start.own_hvdd_exists) {
    argv = {"/bin/sh", "-c", kFindAndRun, "hvdrun", start.own_hvdd, PrefixHvdd(options)};
  }
  for (std::string& argument : HvddArguments(options, start)) argv.push_back(std::move(argument));
  return argv;
}

// The ranks of other hosts have each had a daemon wait there.
bool IsDialled(const RunOptions& options) {
  return options.adoption.has_value() && options.rsh_agent.empty();
}

}  // namespace

std::string WhereHvddIsSought(const RunOptions& options, const DaemonStart& start) {
  std::string places = QuotesInAnyShell(start.own_hvdd)
                           ? absl::StrCat(start.own_hvdd, ", then the PATH of its login shell")
                           : std::string("the PATH of its login shell");
  if (!options.prefix.empty()) absl::StrAppend(&places, ", then ", PrefixHvdd(options));
  return places;
}

std::string RemoteCommand(const RunOptions& options, const DaemonStart& start) {
  std::vector<std::string> words = {start.own_hvdd, PrefixHvdd(options)};
  for (std::string& word : words) {
    if (!QuotesInAnyShell(word)) word.clear();
  }
  for (std::string& argument : HvddArguments(options, start)) words.push_back(std::move(argument));
  for (std::string& word : words) word = QuoteForAnyShell(word);
  return absl::StrCat("exec /bin/sh -c ", QuoteForAnyShell(kFindAndRun), " hvdrun ",
                      absl::StrJoin(words, " "));
}

HostTarget TargetOf(const RunOptions& options, int host) {
  return {options.host_of[host], options.is_local[host]};
}

std::string SshTarget(const RunOptions& options, const HostTarget& target) {
  if (!options.rsh_agent.empty()) return SshDestination(target.host);
  const int port = target.host.port != 0 ? target.host.port : options.ssh_port;
  const std::string& key = options.ssh_identity;
  return absl::StrCat(port != 0 ? absl::StrCat("-p ", port, " ") : "",
                      key.empty() ? "" : absl::StrCat("-i ", AsShellWord(key), " "),
                      SshDestination(target.host));
}

std::string LoginCommand(const RunOptions& options, const HostTarget& target) {
  const Agent* const agent = FindAgent(options.rsh_agent);
  const std::string by = agent != nullptr            ? agent->login
                         : IsDialled(options)        ? "hvdd --dial"
                         : options.rsh_agent.empty() ? "ssh"
                                                     : options.rsh_agent;
  return absl::StrCat(by, " ", SshTarget(options, target));
}

std::string ShellName(const RunOptions& options, const HostTarget& target) {
  if (target.is_local) return "";
  if (IsDialled(options)) return "hvdd --dial";
  if (options.rsh_agent.empty()) return "ssh";
  const auto words = SplitShellWords(options.rsh_agent);
  return words.ok() && !words->empty() ? Printable(words->front()) : "the remote shell";
}

std::string ShortCommand(const RunOptions& options, const HostTarget& target) {
  if (target.is_local) return "hvdd";
  return LoginCommand(options, target) + " hvdd";
}

absl::StatusOr<std::vector<std::string>> DaemonArgv(const RunOptions& options,
                                                    const DaemonStart& start,
                                                    const HostTarget& target) {
  if (target.is_local) return LocalArgv(options, start);
  std::vector<std::string> argv;
  if (IsDialled(options)) {
    argv = {start.own_hvdd, "--dial", target.host.name};
  } else if (options.rsh_agent.empty()) {
    argv = SshArgv(options, target.host);
  } else if (const Agent* const agent = FindAgent(options.rsh_agent)) {
    argv = ArgvOf(*agent);
    argv.push_back(target.host.name);
  } else {
    absl::StatusOr<std::vector<std::string>> words = SplitShellWords(options.rsh_agent);
    if (!words.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--rsh-agent: ", words.status().message()));
    }
    if (words->empty()) return absl::InvalidArgumentError("--rsh-agent names no command");
    argv = *std::move(words);
    argv.push_back(SshDestination(target.host));
  }
  argv.push_back(RemoteCommand(options, start));
  return argv;
}

}  // namespace hvd::cli
