// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/driver.h"

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/file_limit.h"
#include "cli/driver/loop.h"
#include "cli/driver/want.h"
#include "cli/link/term_signal.h"

namespace hvd::cli {
namespace {

constexpr double kAfterPauseS = 1;
constexpr double kTimelineS = 2;  // for the last of the hosts' streams, and for the file

JobPolicy PolicyOf(const RunOptions& options) {
  JobPolicy policy;
  policy.start_timeout_s = options.start_timeout_s;
  policy.lease_s = options.lease_s;
  policy.run_timeout_s = options.run_timeout_s;
  policy.grace_s = options.grace_s;
  policy.grace_is_given = options.grace_is_given;
  policy.verbose = options.verbose > 0;
  policy.report_bindings = options.report_bindings;
  policy.stall = {options.stall_warn_s, options.stall_abort_s};
  policy.compat_horovod = options.compat_horovod;
  policy.stdin_rank = options.stdin_rank;
  policy.elastic = options.elastic;
  policy.np = options.np;
  policy.manager = options.manager;
  policy.adopted_from = options.adoption ? options.adoption->by : "";
  policy.end_notice = options.end_notice;
  return policy;
}

}  // namespace

Driver::Driver(DriverSetup setup)
    : setup_(std::move(setup)),
      options_(*setup_.options),
      topology_(options_.elastic ? Topology() : options_.topology),
      state_(topology_, PolicyOf(options_), MonotonicSeconds()),
      links_(options_.lease_s),
      store_([this](int host, const v1::StoreChunk& chunk) { links_.SendStore(host, chunk); }),
      feed_(options_.stdin_rank, {&hosts_, &state_, &links_}),
      console_(std::move(setup_.console), {&state_, &feed_, &poll_}),
      starts_(std::move(setup_.spawner),
              {&options_, &setup_.start, &hosts_, &state_, &links_, &console_, &poll_,
               [this](const Frame& frame) { discovery_.Heard(frame, MonotonicSeconds()); }}),
      discovery_(options_, DiscoveryWays()),
      timeline_(topology_, {&options_, &hosts_, &state_, &links_, &console_, &poll_}),
      talk_(topology_, {&options_, &hosts_, &state_, &links_, &store_, &console_, &feed_, &starts_,
                        &timeline_}),
      last_words_({&options_, &state_, &console_}) {
  const int hosts = static_cast<int>(topology_.hosts().size());
  for (int host = 0; host < hosts; ++host) AddHost(TargetOf(options_, host));
  starts_.NoteUnasked(hosts);
  state_.mutable_facts()->job = setup_.secrets.job;
  if (setup_.shows_status) console_.ShowStatus(MonotonicSeconds());
}

void Driver::Run() {
  console_.Begin();
  starts_.Begin();
  poll_.Watch({links_.event_fd(), EPOLLIN}, DriverSource::kLinks);
  if (setup_.term.valid()) poll_.Watch({setup_.term.get(), EPOLLIN}, DriverSource::kTerm);
  if (!options_.timeline_path.empty()) timeline_.Begin(options_.timeline_path);
  while (!state_.finished()) {
    Turn();
    CarryOut();
  }
  WaitForTimeline();
  CarryOut();
  starts_.EndLogins();
  talk_.ExplainEnds();
  last_words_.Say();
}

// ---- what comes ----

double Driver::NextDeadline() const {
  return std::min({state_.deadline(), next_look_, give_up_at_, timeline_.recording().deadline(),
                   console_.status_at(), store_.deadline(), discovery_.deadline(),
                   starts_.deadline()});
}

void Driver::Turn() {
  const double left = std::max(0.0, NextDeadline() - MonotonicSeconds());
  const std::vector<DriverPoll::Ready> all = poll_.Wait(left);
  NotePause(left);
  for (const DriverPoll::Ready& ready : all) Take(ready);
  TickClocks();
}

void Driver::Take(const DriverPoll::Ready& ready) {
  switch (ready.source) {
    case DriverSource::kConsole:
      console_.Send();
      if (ready.events & ~EPOLLOUT) console_.Take();
      return;
    case DriverSource::kSpawner:
      return starts_.TakeSpawner();
    case DriverSource::kLinks:
      return TakeArrivals();
    case DriverSource::kHello:
      return starts_.OnHello(ready.host);
    case DriverSource::kErrors:
      return starts_.OnErrors(ready.host);
    case DriverSource::kTimeline:
      return;  // TickClocks looks
    case DriverSource::kTerm:
      if (TermHasCome(setup_.term)) console_.TermOfHelper();
      return;
  }
}

// The messages that hosts have sent while hvdrun was paused are judged by that pause, wherever it
// fell.
void Driver::TakeArrivals() {
  std::vector<Arrival> arrivals = links_.Take();
  NotePause(0);
  talk_.Take(std::move(arrivals));
}

// The loop should have been awake `meant` seconds after its last turn, at the latest.
void Driver::NotePause(double meant) {
  const double now = MonotonicSeconds();
  const double late = now - std::exchange(turned_at_, now) - meant;
  if (late < options_.lease_s / 2) return;
  state_.Paused(late, now);
  // The messages that the hosts have sent meanwhile come first.
  next_look_ = now + kAfterPauseS;
}

void Driver::TickClocks() {
  const double now = MonotonicSeconds();
  links_.Turned(now);
  timeline_.Look(now);
  links_.TellOfBeats(timeline_.recording().on());
  if (now >= next_look_) {
    TakeArrivals();  // what has come already may prove life
    next_look_ = talk_.LookAtLeases(now);
  }
  starts_.StartAgain(now);
  if (now >= state_.deadline()) state_.Tick(now);
  if (now >= store_.deadline()) store_.Tick(now);
  if (state_.ending()) discovery_.Stop();
  if (now >= discovery_.deadline()) discovery_.Tick(now);
}

// ---- what is wanted ----

// Does what the state table wants, until it wants nothing more.
void Driver::CarryOut() {
  for (auto wanted = state_.TakeActions(); !wanted.empty(); wanted = state_.TakeActions()) {
    for (const Action& action : wanted) Do(action);
  }
  timeline_.NoteEpochs();
  if (state_.ending()) console_.TellEnding();
  state_.OutputPaused(console_.is_slow(), MonotonicSeconds());
  talk_.Acknowledge();
  console_.TellStatus(MonotonicSeconds());
}

void Driver::Do(const Action& action) {
  switch (action.kind) {
    case Action::kPrepare:
      return Prepare(action.host);
    case Action::kReach:
      return ReachHost(action.target);
    case Action::kDrop:
      return DropHost(action.host);
    case Action::kSend:
      talk_.Send(action.host, action.command);
      if (action.command.has_spawn_slots()) console_.GiveStdinRoom();
      return;
    case Action::kSay:
      return console_.Say(action.text);
    case Action::kOverdue:
      return starts_.ReportOverdue(action.host);
  }
}

void Driver::Prepare(int meant) {
  feed_.Launched();
  for (int host = 0; host < hosts_.count(); ++host) {
    if (meant != kAllHosts && meant != host) continue;
    v1::Command command;
    *command.mutable_prepare_host() =
        MakePrepare(options_, setup_.secrets, setup_.limits,
                    {host, hosts_.Name(host), state_.facts().hosts[host].ranks});
    links_.Send(host, command);
    feed_.TellSkips(host);
  }
  console_.GiveStdinRoom();
}

void Driver::AddHost(HostTarget target) {
  hosts_.Add(std::move(target));
  links_.AddHost();
  store_.AddHost();
  timeline_.recording().AddHost();
}

// One that is found while the job runs.
void Driver::ReachHost(const HostSlots& host) {
  AddHost(starts_.TargetFor(host));
  starts_.StartNext();
}

// Whatever lives there ends with its link.
void Driver::DropHost(int host) {
  links_.GiveUp(host);
  timeline_.recording().HostEnded(host);
  store_.HostEnded(host);
  starts_.Drop(host);
}

DiscoveryHandlers Driver::DiscoveryWays() {
  DiscoveryHandlers ways;
  ways.discovered = [this](const std::vector<HostSlots>& hosts) {
    state_.Discovered(hosts, MonotonicSeconds());
  };
  ways.failed = [this](const std::string& why) { state_.DiscoveryFailed(why, MonotonicSeconds()); };
  ways.over = [this](const std::string& whose) {
    state_.ManagerStops("the end of " + whose, MonotonicSeconds());
  };
  ways.say = [this](const std::string& text) { console_.Say(text); };
  ways.ask = [this](const Frame& frame) { return starts_.Ask(frame); };
  return ways;
}

// The job is over; what its ranks recorded last may be under way.
void Driver::WaitForTimeline() {
  give_up_at_ = MonotonicSeconds() + kTimelineS;
  timeline_.EndLostHosts();
  while (feed_.launched() && timeline_.recording().open() && MonotonicSeconds() < give_up_at_) {
    Turn();
    CarryOut();
  }
  timeline_.Finish(kTimelineS);
}

void RunDriver(DriverSetup setup) {
  RaiseFileLimit();
  EndInWordsForWant(setup.console.get());
  Driver driver(std::move(setup));
  driver.Run();
  _exit(0);
}

}  // namespace hvd::cli
