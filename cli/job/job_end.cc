// SPDX-License-Identifier: Apache-2.0
// JobState's part for the end: what stops a job, how long others are waited for then, and when it
// is over. The clock comes in here, as most of what it brings about is an end.
#include <signal.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "cli/job/job_state.h"
#include "cli/report/verdict_text.h"
#include "proto/deadlines.h"

namespace hvd {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kAtOnceS = 2;             // between the first and the last that a manager signals
constexpr double kDetailPatienceS = 0.04;  // for the exit status of a lost host's ssh
constexpr double kTellAfterS = SecondsOf(kTellAfter);
constexpr double kStopMarginS = SecondsOf(kHostMargin);
constexpr double kDrainStoppedS = 0.3;  // output after a stop

// A person's or a scheduler's word, while all is well: the ranks may save what they have.
bool LetsAgree(Ending ending) {
  return ending == Ending::kInterrupted || ending == Ending::kTerminated ||
         ending == Ending::kTimedOut || ending == Ending::kHungUp;
}

bool IsBy(int signal, const v1::RankExited& exit) {
  return signal != 0 && (exit.signal() == signal || exit.exit_code() == 128 + signal);
}

// Whether no rank and no host has met another end than TERM's, or the notice's, or than our stop's.
bool IsTermAlone(const JobFacts& facts, int notice) {
  const auto is_rank_fine = [notice](const RankFact& rank) {
    if (!rank.init_failure.empty()) return false;
    if (rank.phase != RankFact::kExited || rank.during_stop) return true;
    return IsBy(SIGTERM, rank.exit) || IsBy(notice, rank.exit) || rank.exit.after_abort() ||
           (rank.exit.signal() == 0 && rank.exit.exit_code() == 0);
  };
  const auto is_host_fine = [](const HostFact& host) {
    return host.fault == HostFact::kNone || absl::StrContains(host.cause, "signal 15");
  };
  return std::all_of(facts.ranks.begin(), facts.ranks.end(), is_rank_fine) &&
         std::all_of(facts.hosts.begin(), facts.hosts.end(), is_host_fine);
}

}  // namespace

void JobState::Signalled(int signal, double now) {
  if (signal == policy_.end_notice) return Noticed(now);
  if (signal != SIGINT && signal != SIGTERM) {
    facts_.passed_on.insert(signal);
    v1::Command command;
    command.mutable_signal()->set_signal(signal);
    return outbox_.Send(kAllHosts, std::move(command));
  }
  if (++interrupts_ > 1) {
    if (interrupts_ == 2) outbox_.Say("killing all ranks");
    return Stop("killed by the second signal to hvdrun", true, now);
  }
  if (signal == SIGTERM) {
    const std::string& manager = policy_.manager;
    return Terminate(manager.empty() ? std::string("stopped by SIGTERM")
                                     : absl::StrCat("stopped by SIGTERM, which ", manager,
                                                    " gets when it is cancelled or out of time"),
                     now);
  }
  outbox_.Say(
      absl::StrFormat("interrupted; stopping %d ranks (grace %g s; Ctrl-C again kills them)\n%s",
                      running_, GraceS(), RenderStates(facts_)));
  stopping_.told = true;
  End(Ending::kInterrupted, "interrupted by Ctrl-C", now);
}

// It may come several times, to a process and to its group, and no person is in a hurry.
void JobState::Noticed(double now) {
  if (std::exchange(noticed_, true)) return;
  Terminate(absl::StrCat("stopped by SIG", sigabbrev_np(policy_.end_notice), ", which ",
                         policy_.manager, " gets before it is killed (qdel, or out of time)"),
            now);
}

void JobState::ManagerStops(const std::string& words, double now) {
  const std::string text = absl::StrCat("stopped by ", words);
  // Its words say more than its signal.
  if (facts_.ending == Ending::kTerminated) facts_.ending_text = text;
  Terminate(text, now);
}

// A manager signals all processes of a job at once: what TERM has done to hosts and ranks already
// is no fault of theirs.
void JobState::Terminate(const std::string& text, double now) {
  const bool at_once = stopping_.begun && now - stopping_.since < kAtOnceS;
  if (at_once && facts_.ending == Ending::kNone && IsTermAlone(facts_, policy_.end_notice)) {
    facts_.ending = Ending::kTerminated;
    facts_.ending_text = text;
  }
  End(Ending::kTerminated, text, now);
}

// A host that does not hear us for the length of its lease ends its ranks; that is no fault of its.
void JobState::Paused(double seconds, double now) {
  pause_.seconds = seconds;
  pause_.until = now;
  if (launch_sent_ && seconds >= policy_.lease_s) EndPaused(now);
}

void JobState::EndPaused(double now) {
  End(Ending::kPaused,
      absl::StrFormat("hvdrun itself was paused for %.1f s (stopped, or given no time by this "
                      "machine), longer than its hosts wait (--lease %g s): they ended their "
                      "ranks",
                      pause_.seconds, policy_.lease_s),
      now);
}

// If a stop has begun when the console or the spawner is lost, nobody sees the stop's end any more,
// nor can hurry it: the ranks have as much time as they would have if it began now, whatever they
// have asked for.
void JobState::ProcessLost(Ending ending, const std::string& text, double now) {
  const bool is_ours = ending == Ending::kConsoleLost || ending == Ending::kSpawnerLost;
  if (is_ours && stopping_.begun && stopping_.grace_s > policy_.grace_s) {
    stopping_.grace_s = policy_.grace_s;
    stopping_.until = std::min(stopping_.until, now + kStopMarginS + policy_.grace_s);
    SendStop(stopping_.cause, false);
  }
  End(ending, text, now);
}

void JobState::End(Ending ending, const std::string& text, double now) {
  if (!stopping_.begun) {
    facts_.ending = ending;
    facts_.ending_text = text;
    stopping_.may_agree = LetsAgree(ending);
  }
  Stop(text, false, now);
}

void JobState::Stop(const std::string& cause, bool kill, double now) {
  if (!stopping_.begun || kill) {
    const bool first = !stopping_.begun;
    stopping_.begun = true;
    if (first) {
      stopping_.since = now;
      stopping_.cause = cause;
      stopping_.grace_s = GraceS();
      if (!stopping_.may_agree) outbox_.Abort(kAllHosts, 0, cause);
    }
    stopping_.until = now + kStopMarginS + (kill ? 0 : stopping_.grace_s);
    SendStop(cause, kill);
    if (policy_.verbose && first && !stopping_.told) {
      outbox_.Say(absl::StrCat("stopping: ", cause));
      stopping_.told = true;
    }
  }
  Settle(now);
}

// The longest that a rank of the job has asked for, where the person has not said how long.
double JobState::GraceS() const {
  double grace_s = policy_.grace_s;
  if (policy_.grace_is_given) return grace_s;
  for (const RankFact& fact : facts_.ranks) {
    if (fact.phase == RankFact::kRunning) grace_s = std::max(grace_s, fact.grace_s);
  }
  return grace_s;
}

void JobState::OnGraceAsked(const v1::GraceAsked& asked) {
  const int rank = IndexOf(asked.member());
  if (rank >= 0) facts_.ranks[rank].grace_s = static_cast<double>(asked.milliseconds()) * 1e-3;
}

void JobState::SendStop(const std::string& cause, bool kill) {
  stopping_.may_agree = stopping_.may_agree && !kill;
  v1::Command command;
  v1::Stop& stop = *command.mutable_stop();
  stop.set_cause(cause);
  stop.set_kill(kill);
  stop.set_may_agree(stopping_.may_agree);
  stop.set_grace_s(stopping_.grace_s);
  outbox_.Send(kAllHosts, std::move(command));
}

// The stop goes on, and what its ranks still wait for never comes.
void JobState::EndAgreement(const std::string& why) {
  if (!std::exchange(stopping_.may_agree, false)) return;
  SendStop(absl::StrCat(stopping_.cause, "; ", why), false);
}

// A rank has failed because of another, which aborted their epoch and still runs: how that one ends
// says more, so it is not stopped at once.
void JobState::StopForVictim(const std::string& cause, double patience_s, double now) {
  if (victim_.until == 0) {
    victim_.until = now + patience_s;
    victim_.cause = cause;
  }
  Settle(now);
}

void JobState::Tick(double now) {
  if (!stopping_.begun) return TickRunning(now);
  if (!stopping_.told && now >= stopping_.since + kTellAfterS) {
    stopping_.told = true;
    outbox_.Say(absl::StrFormat("%s; stopping the other ranks (grace %g s)", stopping_.cause,
                                stopping_.grace_s));
  }
  Settle(now);
}

void JobState::TickRunning(double now) {
  if (policy_.run_timeout_s > 0 && now >= started_ + policy_.run_timeout_s) {
    return End(Ending::kTimedOut,
               absl::StrFormat("the job ran longer than --timeout %g s", policy_.run_timeout_s),
               now);
  }
  if (victim_.until > 0 && now >= victim_.until) return Stop(victim_.cause, false, now);
  if (starting() && now >= NextStartDeadline()) ReportOverdue(now);
  if (membership_ && now >= membership_->deadline()) {
    membership_->Tick(now);
    CarryOut(now);
  }
  const double waiting = epochs_.waiting_since();
  if (!stopping_.begun && waiting > 0 && now >= waiting + policy_.start_timeout_s) {
    return End(
        Ending::kNotJoined,
        absl::StrFormat("still without hvd's init after --start-timeout %g s, while the other "
                        "ranks wait: %s%s",
                        policy_.start_timeout_s, epochs_.Missing(), InitFailures()),
        now);
  }
  if (stalls_.asking() && now >= stalls_.deadline()) return TellStall(now);
  Settle(now);
}

void JobState::TellStall(double now) {
  if (stopping_.begun) return;
  const std::optional<StallBook::Report> fatal = stalls_.Tell(now, AwaitedRanks(now));
  if (!fatal.has_value()) return Settle(now);
  if (!ReplaceStalled(*fatal, now)) End(Ending::kStalled, fatal->text, now);
}

// Decides whether the job is over, and when to look again.
void JobState::Settle(double now) {
  deadline_ = kForever;
  facts_.duration_s = Since(now);
  if (finished_) return;
  if (stopping_.begun) {
    if (!stopping_.told) WakeAt(stopping_.since + kTellAfterS);
    finished_ = StopDone(now);
    return;
  }
  DropDrained(now);
  if (stalls_.asking()) WakeAt(stalls_.deadline());
  if (victim_.until > 0) WakeAt(victim_.until);
  if (policy_.run_timeout_s > 0) WakeAt(started_ + policy_.run_timeout_s);
  if (!launched_all_) WakeAt(NextStartDeadline());
  if (membership_) WakeAt(membership_->deadline());
  if (epochs_.waiting_since() > 0) WakeAt(epochs_.waiting_since() + policy_.start_timeout_s);
  if (running_ == 0 && !changes()) finished_ = OutputDone(kOutputPatienceS, now);
  if (finished_ && output_.open() > 0) {
    facts_.lost_output.push_back(absl::StrFormat(
        "the end of the ranks' output has not come (%d of their streams)", output_.open()));
  }
}

bool JobState::StopDone(double now) {
  // Hosts are not waited for any longer. The output that they have sent is the person's, as fast as
  // its reader takes it: the console knows when that one is stuck.
  if (now >= stopping_.until) return OutputDone(kDrainStoppedS, now);
  WakeAt(stopping_.until);
  return HostsDone(now) && OutputDone(kDrainStoppedS, now);
}

bool JobState::HostsDone(double now) {
  const auto& hosts = facts_.hosts;
  // Nothing runs yet: what we wait for is the same fault on other hosts.
  const bool more = now < faults_until_ && std::any_of(hosts.begin(), hosts.end(), [](auto& fact) {
                      return fact.fault == HostFact::kNone && fact.phase != HostFact::kGone;
                    });
  if (more) WakeAt(faults_until_);
  if (more) return false;
  for (const HostFact& fact : hosts) {
    const bool hears_us = !membership_ || fact.phase != HostFact::kStarting;
    if (fact.phase != HostFact::kGone && launch_sent_ && hears_us) return false;
    if (fact.fault == HostFact::kLost && !fact.end_known && now < last_fault_ + kDetailPatienceS) {
      WakeAt(last_fault_ + kDetailPatienceS);
      return false;
    }
  }
  return true;
}

bool JobState::OutputDone(double patience_s, double now) {
  const bool done = output_.Done(patience_s, now);
  if (!done) WakeAt(output_.NextLook(patience_s));
  return done;
}

}  // namespace hvd
