// SPDX-License-Identifier: Apache-2.0
#include "cli/report/verdict_advice.h"

#include <signal.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process_end.h"
#include "cli/membership/faults/link_words.h"

namespace hvd::cli {
namespace {

constexpr const char* kEqualSteps =
    "let every rank run as many steps, or call hvd_join when it has no more; a metric that ends "
    "the training must be the mean over all ranks (Keras: MetricAverageCallback before "
    "EarlyStopping)";

// By another rank that has called shutdown, as at the end of its program, before this one did. A
// rank that ends by an exception shuts down, too, and is told of itself.
bool WasLeftBehind(const v1::RankExited& exit, int rank) {
  constexpr const char* kLeft = " has left the job (shutdown) while other ranks wait";
  return absl::StrContains(exit.aborted(), kLeft) &&
         !absl::StrContains(exit.aborted(), absl::StrCat("rank ", rank, kLeft));
}

std::string AfterPassedOn(int signal) {
  return absl::StrCat("hvdrun has got ", NameSignal(signal),
                      " and passed it on to every rank, and the program has no handler for it: let "
                      "it have one, or do not send it");
}

std::string AfterSignal(const JobFacts& facts, const v1::RankExited& exit,
                        const std::string& host) {
  if (facts.passed_on.count(exit.signal()) != 0) return AfterPassedOn(exit.signal());
  switch (exit.signal()) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
      return exit.core_dumped()
                 ? absl::StrCat("open its core file on ", host, " with a debugger")
                 : "for the place in the program, allow core files (ulimit -c unlimited) or, in "
                   "Python, set PYTHONFAULTHANDLER=1, and run it again";
    case SIGXCPU:
      return "raise the limit of its time (ulimit -t)";
    case SIGXFSZ:
      return "raise the limit of its files' sizes (ulimit -f)";
    default:
      break;
  }
  if (exit.out_of_memory()) {
    return "give each rank less to hold (a smaller batch), or run fewer ranks on the host";
  }
  return absl::StrCat("find who killed it on ", host,
                      ": a person, the batch system or the kernel (dmesg)");
}

bool LacksHorovod(const v1::RankExited& exit) {
  return std::any_of(exit.last_lines().begin(), exit.last_lines().end(), [](const auto& line) {
    return absl::StrContains(line, "No module named 'horovod'");
  });
}

bool LacksCoordinator(const v1::RankExited& exit) {
  return std::any_of(exit.last_lines().begin(), exit.last_lines().end(), [](const auto& line) {
    return absl::StrContains(line, "coordinator_address should be defined");
  });
}

std::string WithoutHorovod(const JobFacts& facts, const std::string& host) {
  if (!facts.compat_horovod) {
    return "hvd can answer in horovod's place: give hvdrun --compat horovod";
  }
  return absl::StrCat(
      "its Python has not read the first folder of PYTHONPATH, which has hvd's "
      "sitecustomize.py: is hvd on ",
      host,
      " where it is here (or where --prefix says), and is Python started "
      "without -I, -E and -S?");
}

std::string AfterRank(const JobFacts& facts, int rank) {
  const RankFact& fact = facts.ranks[rank];
  const v1::RankExited& exit = fact.exit;
  const std::string& host = facts.hosts[fact.host].name;
  if (fact.early) {
    return exit.joined() ? kEqualSteps : "let every rank call hvd_init, or none of them";
  }
  if (fact.worker.pid() != 0 && !OwnEndSaysMore(fact)) {
    v1::RankExited end;
    end.set_signal(fact.worker.signal());
    end.set_core_dumped(fact.worker.core_dumped());
    if (end.signal() != 0) return AfterSignal(facts, end, host);
    return "let the wrapper end with its worker (exec), or print what it says";
  }
  if (fact.phase != RankFact::kExited || !fact.broke.empty()) return "";
  if (!exit.exec_error().empty()) {
    const bool said = absl::StrContains(exit.exec_error(), "next:") ||
                      absl::StrContains(exit.exec_error(), "write ./");
    return said || exit.exit_code() != 127
               ? ""
               : "give the command's whole path, or install it on every host";
  }
  if (exit.signal() != 0) return AfterSignal(facts, exit, host);
  if (WasLeftBehind(exit, rank)) return kEqualSteps;
  if (LacksHorovod(exit)) return WithoutHorovod(facts, host);
  if (LacksCoordinator(exit)) {
    return "import hvd.jax before jax.distributed.initialize(), which needs no argument then";
  }
  if (!facts.adopted_from.empty()) {
    return absl::StrCat("its output lies with that of ", facts.adopted_from);
  }
  return exit.last_lines_size() > 0
             ? ""
             : absl::StrCat("it has printed nothing; run the command alone on ", host,
                            " to see why it ends so");
}

bool WasLost(const RankFact& rank) {
  if (rank.phase == RankFact::kLost) return true;
  return rank.phase == RankFact::kExited && !EndedByStop(rank) &&
         (rank.exit.signal() != 0 || rank.exit.exit_code() != 0);
}

// Nobody has died: those that lack have never been there.
bool NobodyWasLost(const JobFacts& facts) {
  return std::none_of(facts.ranks.begin(), facts.ranks.end(), WasLost) &&
         std::all_of(facts.hosts.begin(), facts.hosts.end(),
                     [](const HostFact& host) { return host.fault == HostFact::kNone; });
}

std::string AfterEnding(const JobFacts& facts) {
  switch (facts.ending) {
    case Ending::kTimedOut:
      return "give it longer (--timeout), if it was not stuck";
    case Ending::kStalled:
      return "let all ranks ask for the same tensors, or wait longer "
             "(--stall-check-shutdown-time-seconds)";
    case Ending::kNotJoined:
      return "let every rank call hvd_init, or give slow ones longer (--start-timeout)";
    case Ending::kHungUp:
      return "start it under nohup, tmux or screen if it shall outlive the terminal";
    case Ending::kPaused:
      return "let hvdrun run; a longer --lease bears longer pauses";
    case Ending::kTooFew:
      if (NobodyWasLost(facts)) {
        return "let the list of hosts have more slots, wait longer for them (--elastic-timeout), "
               "or let fewer do (--min-np)";
      }
      return "look at what became of the missing ranks; give them longer (--elastic-timeout), or "
             "let "
             "fewer do (--min-np)";
    case Ending::kStateLost:
      return "begin it again from what the program itself has saved; more hosts at a time bear "
             "more "
             "losses";
    case Ending::kResetLimit:
      return "look at why its epochs ended, or allow more of them (--reset-limit)";
    case Ending::kProgramBug:
      return "mend the program; neither a host nor another start helps";
    case Ending::kNoHosts:
      return "run the discovery script by hand: it prints a host a line, as name:slots";
    case Ending::kConsoleLost:
    case Ending::kSpawnerLost:
      return "find who killed it here: a person, the batch system or the kernel (dmesg)";
    case Ending::kSignal:
      return facts.ending_signal == SIGQUIT ? "" : AfterPassedOn(facts.ending_signal);
    case Ending::kNone:
    case Ending::kInterrupted:
    case Ending::kTerminated:
    case Ending::kOutputGone:
      return "";
  }
  return "";
}

}  // namespace

std::string NextStep(const JobFacts& facts, const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::kRank:
      if (!facts.cut_links.empty()) return kLinkHint;
      return AfterRank(facts, verdict.index);
    case Verdict::kEnding:
      return AfterEnding(facts);
    case Verdict::kHost: {
      const HostFact& host = facts.hosts[verdict.index];
      if (host.fault != HostFact::kLost || !host.remedy.empty()) return "";
      const std::string& name = host.name;
      return absl::StrCat("find out what became of ", name,
                          ": is it up, does the network reach it, was hvdd killed there (dmesg)?");
    }
    case Verdict::kLostOutput:
      if (facts.lost_output.empty()) {
        return "make room there, or name another place (--output-filename, --timeline-filename)";
      }
      return "give it a reader that reads or a disk with room; --output-filename DIR keeps all "
             "output in files";
    default:
      return "";
  }
}

}  // namespace hvd::cli
