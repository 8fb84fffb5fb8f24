// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_stop.h"

#include <signal.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "cli/report/verdict_text.h"
#include "proto/deadlines.h"

namespace hvd::cli {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kAtOnceS = 2;  // between the first and the last that a manager signals
constexpr double kTellAfterS = SecondsOf(kTellAfter);
constexpr double kStopMarginS = SecondsOf(kHostMargin);

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

void JobStop::Signalled(int signal, int running, double now) {
  if (signal == book_->policy.end_notice) return Noticed(now);
  if (signal != SIGINT && signal != SIGTERM) {
    book_->facts.passed_on.insert(signal);
    v1::Command command;
    command.mutable_signal()->set_signal(signal);
    return book_->outbox.Send(kAllHosts, std::move(command));
  }
  if (++interrupts_ > 1) {
    if (interrupts_ == 2) book_->outbox.Say("killing all ranks");
    return Stop("killed by the second signal to hvdrun", true, now);
  }
  if (signal == SIGTERM) {
    const std::string& manager = book_->policy.manager;
    return Terminate(manager.empty() ? std::string("stopped by SIGTERM")
                                     : absl::StrCat("stopped by SIGTERM, which ", manager,
                                                    " gets when it is cancelled or out of time"),
                     now);
  }
  book_->outbox.Say(
      absl::StrFormat("interrupted; stopping %d ranks (grace %g s; Ctrl-C again kills them)\n%s",
                      running, GraceS(), RenderStates(book_->facts)));
  stopping_.told = true;
  End(Ending::kInterrupted, "interrupted by Ctrl-C", now);
}

void JobStop::Noticed(double now) {
  if (std::exchange(noticed_, true)) return;
  Terminate(absl::StrCat("stopped by SIG", sigabbrev_np(book_->policy.end_notice), ", which ",
                         book_->policy.manager, " gets before it is killed (qdel, or out of time)"),
            now);
}

void JobStop::ManagerStops(const std::string& words, double now) {
  const std::string text = absl::StrCat("stopped by ", words);
  // Its words say more than its signal.
  if (book_->facts.ending == Ending::kTerminated) book_->facts.ending_text = text;
  Terminate(text, now);
}

// A manager signals all processes of a job at once: what TERM has done to hosts and ranks already
// is no fault of theirs.
void JobStop::Terminate(const std::string& text, double now) {
  const bool at_once = stopping_.begun && now - stopping_.since < kAtOnceS;
  if (at_once && book_->facts.ending == Ending::kNone &&
      IsTermAlone(book_->facts, book_->policy.end_notice)) {
    book_->facts.ending = Ending::kTerminated;
    book_->facts.ending_text = text;
  }
  End(Ending::kTerminated, text, now);
}

// A host that does not hear us for the length of its lease ends its ranks; that is no fault of its.
void JobStop::Paused(double seconds, bool launched, double now) {
  pause_.seconds = seconds;
  pause_.until = now;
  if (launched && seconds >= book_->policy.lease_s) EndPaused(now);
}

void JobStop::EndPaused(double now) {
  End(Ending::kPaused,
      absl::StrFormat("hvdrun itself was paused for %.1f s (stopped, or given no time by this "
                      "machine), longer than its hosts wait (--lease %g s): they ended their "
                      "ranks",
                      pause_.seconds, book_->policy.lease_s),
      now);
}

// If a stop has begun when the console or the spawner is lost, nobody sees the stop's end any more,
// nor can hurry it: the ranks have as much time as they would have if it began now, whatever they
// have asked for.
void JobStop::ProcessLost(Ending ending, const std::string& text, double now) {
  const bool is_ours = ending == Ending::kConsoleLost || ending == Ending::kSpawnerLost;
  if (is_ours && stopping_.begun && stopping_.grace_s > book_->policy.grace_s) {
    stopping_.grace_s = book_->policy.grace_s;
    stopping_.until = std::min(stopping_.until, now + kStopMarginS + book_->policy.grace_s);
    SendStop(stopping_.cause, false);
  }
  End(ending, text, now);
}

void JobStop::End(Ending ending, const std::string& text, double now) {
  if (!stopping_.begun) {
    book_->facts.ending = ending;
    book_->facts.ending_text = text;
    stopping_.may_agree = LetsAgree(ending);
  }
  Stop(text, false, now);
}

void JobStop::Stop(const std::string& cause, bool kill, double now) {
  if (stopping_.begun && !kill) return;
  const bool first = !std::exchange(stopping_.begun, true);
  if (first) {
    stopping_.since = now;
    stopping_.cause = cause;
    stopping_.grace_s = GraceS();
    if (!stopping_.may_agree) book_->outbox.Abort(kAllHosts, 0, cause);
  }
  stopping_.until = now + kStopMarginS + (kill ? 0 : stopping_.grace_s);
  SendStop(cause, kill);
  if (book_->policy.verbose && first && !stopping_.told) {
    book_->outbox.Say(absl::StrCat("stopping: ", cause));
    stopping_.told = true;
  }
}

// The longest that a rank of the job has asked for, where the person has not said how long.
double JobStop::GraceS() const {
  double grace_s = book_->policy.grace_s;
  if (book_->policy.grace_is_given) return grace_s;
  for (const RankFact& fact : book_->facts.ranks) {
    if (fact.phase == RankFact::kRunning) grace_s = std::max(grace_s, fact.grace_s);
  }
  return grace_s;
}

void JobStop::SendStop(const std::string& cause, bool kill) {
  stopping_.may_agree = stopping_.may_agree && !kill;
  v1::Command command;
  v1::Stop& stop = *command.mutable_stop();
  stop.set_cause(cause);
  stop.set_kill(kill);
  stop.set_may_agree(stopping_.may_agree);
  stop.set_grace_s(stopping_.grace_s);
  book_->outbox.Send(kAllHosts, std::move(command));
}

void JobStop::EndAgreement(const std::string& why) {
  if (!std::exchange(stopping_.may_agree, false)) return;
  SendStop(absl::StrCat(stopping_.cause, "; ", why), false);
}

void JobStop::AwaitCulprit(const std::string& cause, double patience_s, double now) {
  if (victim_.until == 0) {
    victim_.until = now + patience_s;
    victim_.cause = cause;
  }
}

bool JobStop::CulpritEnded(double now) {
  if (victim_.until == 0) return false;
  Stop(victim_.cause, now);
  return true;
}

bool JobStop::ExplainsSilence(double now) {
  const double lease_s = book_->policy.lease_s;
  if (pause_.seconds <= lease_s / 2 || now >= pause_.until + lease_s) return false;
  EndPaused(now);
  return true;
}

void JobStop::Tick(double now) {
  if (stopping_.begun) {
    if (stopping_.told || now < stopping_.since + kTellAfterS) return;
    stopping_.told = true;
    return book_->outbox.Say(absl::StrFormat("%s; stopping the other ranks (grace %g s)",
                                             stopping_.cause, stopping_.grace_s));
  }
  const double run_timeout_s = book_->policy.run_timeout_s;
  if (run_timeout_s > 0 && now >= book_->started + run_timeout_s) {
    return End(Ending::kTimedOut,
               absl::StrFormat("the job ran longer than --timeout %g s", run_timeout_s), now);
  }
  if (victim_.until > 0 && now >= victim_.until) Stop(victim_.cause, now);
}

double JobStop::deadline() const {
  if (stopping_.begun) return stopping_.told ? kForever : stopping_.since + kTellAfterS;
  const double run_timeout_s = book_->policy.run_timeout_s;
  const double end = run_timeout_s > 0 ? book_->started + run_timeout_s : kForever;
  return victim_.until > 0 ? std::min(end, victim_.until) : end;
}

}  // namespace hvd::cli
