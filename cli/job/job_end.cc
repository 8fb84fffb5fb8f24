// JobState's part for the end: what stops a job, how long others are waited for then, and when it
// is over. The clock comes in here, as most of what it brings about is an end.
#include <signal.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "cli/job/job_state.h"
#include "cli/report/verdict_text.h"
#include "proto/deadlines.h"
#include "proto/exit_code.h"

namespace hvd {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kDetailPatienceS = 0.04;  // for the exit status of a lost host's ssh
constexpr double kTellAfterS = SecondsOf(kTellAfter);
constexpr double kStopMarginS = SecondsOf(kHostMargin);
constexpr double kDrainS = 2;           // output after the last clean exit
constexpr double kDrainStoppedS = 0.3;  // output after a stop

}  // namespace

void JobState::Signalled(int signal, double now) {
  if (signal != SIGINT && signal != SIGTERM) {
    v1::Command command;
    command.mutable_signal()->set_signal(signal);
    return Send(kAllHosts, std::move(command));
  }
  if (++interrupts_ > 1) {
    if (interrupts_ == 2) Say("killing all ranks");
    return Stop("killed by the second signal to hvdrun", true, now);
  }
  if (signal == SIGTERM) {
    return End(Ending::kTerminated, "stopped by SIGTERM", now);
  }
  Say(absl::StrFormat("interrupted; stopping %d ranks (grace %g s; Ctrl-C again kills them)\n%s",
                      running_, policy_.grace_s, RenderStates(facts_)));
  told_ = true;
  End(Ending::kInterrupted, "interrupted by Ctrl-C", now);
}

// A host that does not hear us for the length of its lease ends its ranks; that is no fault of its.
void JobState::Paused(double seconds, double now) {
  paused_s_ = seconds;
  paused_until_ = now;
  if (launch_sent_ && seconds >= policy_.lease_s) EndPaused(now);
}

void JobState::EndPaused(double now) {
  End(Ending::kPaused,
      absl::StrFormat("hvdrun itself was paused for %.1f s (stopped, or given no time by this "
                      "machine), longer than its hosts wait (--lease %g s): they ended their "
                      "ranks",
                      paused_s_, policy_.lease_s),
      now);
}

void JobState::LeaseEnded(int host, double now) {
  if (paused_s_ > policy_.lease_s / 2 && now < paused_until_ + policy_.lease_s) {
    return EndPaused(now);
  }
  HostLost(host,
           absl::StrFormat("its hvdd did not hear hvdrun for %g s (--lease): the network or the "
                           "remote shell was stuck; it ended its ranks",
                           policy_.lease_s),
           now);
}

void JobState::ProcessLost(Ending ending, const std::string& text, double now) {
  End(ending, text, now);
}

void JobState::End(Ending ending, const std::string& text, double now) {
  if (!stopping_) {
    facts_.ending = ending;
    facts_.ending_text = text;
  }
  Stop(text, false, now);
}

void JobState::Stop(const std::string& cause, bool kill, double now) {
  if (!stopping_ || kill) {
    const bool first = !stopping_;
    stopping_ = true;
    if (first) {
      stop_since_ = now;
      stop_cause_ = cause;
      Abort(cause);
    }
    stop_deadline_ = now + kStopMarginS + (kill ? 0 : policy_.grace_s);
    v1::Command command;
    command.mutable_stop()->set_cause(cause);
    command.mutable_stop()->set_kill(kill);
    Send(kAllHosts, std::move(command));
    if (policy_.verbose && first && !told_) {
      Say(absl::StrCat("stopping: ", cause));
      told_ = true;
    }
  }
  Settle(now);
}

// A rank has failed because of another, which aborted their epoch and still runs: how that one ends
// says more, so it is not stopped at once.
void JobState::StopForVictim(const std::string& cause, double patience_s, double now) {
  if (victim_until_ == 0) {
    victim_until_ = now + patience_s;
    victim_cause_ = cause;
  }
  Settle(now);
}

double JobState::start_deadline() const { return started_ + policy_.start_timeout_s; }

double JobState::deadline() const { return deadline_; }

void JobState::Tick(double now) {
  if (!stopping_ && policy_.run_timeout_s > 0 && now >= started_ + policy_.run_timeout_s) {
    return End(Ending::kTimedOut,
               absl::StrFormat("the job ran longer than --timeout %g s", policy_.run_timeout_s),
               now);
  }
  if (!stopping_ && victim_until_ > 0 && now >= victim_until_) {
    return Stop(victim_cause_, false, now);
  }
  if (starting() && now >= start_deadline()) {
    for (size_t host = 0; host < facts_.hosts.size(); ++host) {
      if (facts_.hosts[host].phase != HostFact::kGreeted || !launch_sent_) continue;
      HostFact fault;
      fault.fault_code = kExitLauncher;
      fault.cause = absl::StrFormat("hvdd did not start the ranks within --start-timeout %g s",
                                    policy_.start_timeout_s);
      fault.remedy = "is a file system or the machine stuck there?";
      HostNotStarted(host, fault, now);
    }
  }
  const double waiting = epochs_.waiting_since();
  if (!stopping_ && waiting > 0 && now >= waiting + policy_.start_timeout_s) {
    return End(
        Ending::kNotJoined,
        absl::StrFormat("still without hvd's init after --start-timeout %g s, while the other "
                        "ranks wait: %s%s",
                        policy_.start_timeout_s, epochs_.Missing(), InitFailures()),
        now);
  }
  if (stalls_.asking() && now >= stall_deadline_) TellStall(now);
  if (stopping_ && !told_ && now >= stop_since_ + kTellAfterS) {
    told_ = true;
    Say(absl::StrFormat("%s; stopping the other ranks (grace %g s)", stop_cause_, policy_.grace_s));
  }
  Settle(now);
}

// Decides whether the job is over, and when to look again.
void JobState::Settle(double now) {
  deadline_ = kForever;
  facts_.duration_s = Since(now);
  if (finished_) return;
  if (stopping_) {
    if (!told_) WakeAt(stop_since_ + kTellAfterS);
    finished_ = StopDone(now);
    return;
  }
  if (stalls_.asking()) WakeAt(stall_deadline_);
  if (victim_until_ > 0) WakeAt(victim_until_);
  if (policy_.run_timeout_s > 0) WakeAt(started_ + policy_.run_timeout_s);
  if (!launched_all_) WakeAt(start_deadline());
  if (epochs_.waiting_since() > 0) WakeAt(epochs_.waiting_since() + policy_.start_timeout_s);
  if (running_ == 0) finished_ = StreamsDone(kDrainS, now);
}

bool JobState::StopDone(double now) {
  // Hosts are not waited for any longer. What they have sent is the person's, as fast as its reader
  // takes it: the console knows when that one is stuck.
  if (now >= stop_deadline_) return StreamsDone(kDrainStoppedS, now);
  WakeAt(stop_deadline_);
  if (now < faults_until_) {
    // Nothing runs yet: what we wait for is the same fault on other hosts.
    const bool more = std::any_of(facts_.hosts.begin(), facts_.hosts.end(), [](const auto& fact) {
      return fact.fault == HostFact::kNone && fact.phase != HostFact::kGone;
    });
    if (more) WakeAt(faults_until_);
    if (more) return false;
  }
  for (size_t host = 0; host < facts_.hosts.size(); ++host) {
    const HostFact& fact = facts_.hosts[host];
    if (fact.phase != HostFact::kGone && launch_sent_) return false;
    if (fact.fault == HostFact::kLost && !detail_known_[host] &&
        now < last_fault_ + kDetailPatienceS) {
      WakeAt(last_fault_ + kDetailPatienceS);
      return false;
    }
  }
  return StreamsDone(kDrainStoppedS, now);
}

// True when every stream has ended, or when nothing came for `patience_s` although it could.
bool JobState::StreamsDone(double patience_s, double now) {
  if (open_streams_ <= 0) return true;
  if (output_paused_) return false;
  if (now >= last_output_ + patience_s) return true;
  WakeAt(last_output_ + patience_s);
  return false;
}

}  // namespace hvd
