// SPDX-License-Identifier: Apache-2.0
// The driver itself: what RunDriver runs. One thread; epoll over the console, the spawner, the
// hosts that are being reached and the bell of the links. driver.cc has the loop, start.cc
// the hosts until their link is open, talk.cc the console and the open links.
#pragma once

#include <sys/epoll.h>

#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cli/driver/console_link.h"
#include "cli/driver/discovery.h"
#include "cli/driver/driver.h"
#include "cli/driver/store.h"
#include "cli/driver/term_sources.h"
#include "cli/job/job_state.h"
#include "cli/link/link.h"
#include "cli/reach/host.h"
#include "cli/reach/spawner.h"
#include "cli/report/start_status.h"
#include "cli/timeline/recording.h"

namespace hvd {

// hvdrun's own words, as the console shows them.
Frame NoticeOf(const std::string& text);

// The source of an epoll event.
enum class DriverSource : uint32_t {
  kConsole,
  kSpawner,
  kLinks,
  kHello,
  kErrors,
  kTimeline,
  kTerm
};

class Driver {
 public:
  explicit Driver(DriverSetup setup)
      : setup_(std::move(setup)),
        options_(*setup_.options),
        console_(std::move(setup_.console)),
        spawner_(std::move(setup_.spawner)),
        state_(options_.elastic ? Topology() : options_.topology,
               {options_.start_timeout_s,
                options_.lease_s,
                options_.run_timeout_s,
                options_.grace_s,
                options_.grace_is_given,
                options_.verbose > 0,
                options_.report_bindings,
                {options_.stall_warn_s, options_.stall_abort_s},
                options_.compat_horovod,
                options_.stdin_rank,
                options_.elastic,
                options_.np,
                options_.manager,
                options_.adoption ? options_.adoption->by : "",
                options_.end_notice},
               MonotonicSeconds()),
        links_(options_.lease_s),
        store_([this](int host, const v1::StoreChunk& chunk) { links_.SendStore(host, chunk); }),
        discovery_(options_, DiscoveryWays()),
        timeline_(options_.elastic ? Topology() : options_.topology),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    AddFirstHosts();
    state_.mutable_facts()->job = setup_.secrets.job;
    if (setup_.shows_status) status_at_ = MonotonicSeconds() + kStatusAfterS;
  }

  void Run();

 private:
  // The loop.
  void Watch(int fd, uint32_t events, DriverSource source, int host = 0);
  void Turn();
  double NextDeadline() const;
  void NotePause(double meant);
  void TickClocks();
  void LookAtLeases(double now);
  void CarryOut();
  void Do(const Action& action);
  void Prepare(int host);
  void ReportOverdue(int host);
  void Finish();
  Frame Report();
  void Drain();

  // The console.
  void TakeConsole();
  void OnConsoleFrame(Frame* frame);
  void TermOfHelper();
  void Say(const std::string& text);
  void SendConsole();
  void SendSkips(int host);
  void TellStatus(double now);  // status.cc

  // The spawner and the hosts that it starts.
  void TakeSpawner();
  void AddFirstHosts();
  void AddHost(HostTarget target);
  void ReachHost(const HostSlots& host);
  void DropHost(int host);
  bool MayStartNext() const;
  bool IsMeantForStdin(size_t host) const;
  void AskSpawner(FrameKind kind, int host);
  void AskToStart(int host);
  void OnStarted(int host, Frame* frame);
  void OnChildExited(int host, int wait_status);
  void OnHello(int host);
  void OnErrors(int host);
  bool TriesAgain(int host, const StartFailure& failure);
  void NotStarted(int host, HostFact fault);
  void RefuseTwin(int host, int twin);
  void SayCommand(int host);
  void StartNext();
  void EndLogins();
  const std::string& HostName(int host) const { return targets_[host].host.name; }

  DiscoveryHandlers DiscoveryWays();

  // The daemons.
  void TakeArrivals();
  void OnEvent(int host, const v1::Event& event);
  void OnOutput(int host, v1::OutputChunk* chunk);
  void TellRank(int index);
  void OnLinkEnded(int host);
  void ExplainLinks();
  void Acknowledge();
  void GiveStdinRoom();

  // The timeline (timeline_asked.cc).
  struct TimelineAsk {
    int host = 0;  // of the member that asks
    v1::TimelineAsked asked = {};
  };
  void BeginTimeline(const std::string& path);
  void LookAtTimeline(double now);
  void OnTimelineAsked(int host, const v1::TimelineAsked& asked);
  void Postpone(const TimelineAsk& ask);
  void AnswerTimeline(const TimelineAsk& ask, v1::SetTimeline set);
  void SendTimeline(int host, v1::SetTimeline set);
  void AnswerTimelineEnded(const absl::Status& ended);
  void WaitForTimeline();

  DriverSetup setup_;
  const RunOptions& options_;
  DriverConsole console_;
  Descriptor spawner_;
  JobState state_;
  std::deque<HostPort> ports_;      // by host; a host is only ever added
  std::deque<HostTarget> targets_;  // by host
  DaemonLinks links_;
  DriverStore store_;
  Discovery discovery_;
  DriverTimeline timeline_;
  std::optional<TimelineAsk> timeline_asker_;     // of the file that is being begun; none: hvdrun
  std::vector<TimelineAsk> timeline_asks_;        // that came meanwhile
  std::vector<uint64_t> timeline_enders_;         // members that wait for its end
  std::unordered_map<std::string, int> greeted_;  // hosts by what their hvdd says they are
  Descriptor epoll_;
  int next_start_ = 0;                     // the first host that the spawner has not been asked for
  double next_look_ = 0;                   // at the leases
  double turned_at_ = MonotonicSeconds();  // when the loop last was awake
  double give_up_at_ = std::numeric_limits<double>::infinity();  // waiting for what is left
  std::string status_;                                           // as told
  double status_at_ = std::numeric_limits<double>::infinity();   // when to look again
  size_t epochs_told_ = 0;                                       // to the timeline
  std::vector<int> told_ranks_;  // to the console, by member - 1; -2: nothing
  size_t stdin_hosts_ = 0;       // that were there at the launch: who comes later has missed some
  uint64_t skips_ = 0;           // of kMaySkip
  TermSources terms_;
  bool launched_ = false;
  bool console_writable_watched_ = false;
  bool ending_told_ = false;  // to the console
  bool report_lost_ = false;  // job.json could not be written
  bool drained_ = false;      // the console has written all output, or lost it
};

}  // namespace hvd
