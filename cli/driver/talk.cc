// SPDX-License-Identifier: Apache-2.0
// The driver's talk with the console and, over open links, with the daemons.
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "cli/driver/loop.h"
#include "cli/reach/ssh_failure.h"

namespace hvd {
namespace {

constexpr uint64_t kStdinWindow = 64 * 1024;

}  // namespace

void Driver::TakeConsole() {
  for (;;) {
    Frame frame;
    const FrameResult result = ReceiveFrame(console_.fd(), &frame);
    if (result == FrameResult::kWouldBlock) return;
    if (result == FrameResult::kGone) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, console_.fd(), nullptr);
      console_.Close();
      return state_.ProcessLost(Ending::kConsoleLost, "hvdrun's console process died",
                                MonotonicSeconds());
    }
    OnConsoleFrame(&frame);
  }
}

void Driver::OnConsoleFrame(Frame* frame) {
  if (frame->kind == FrameKind::kSignal) {
    if (frame->end)
      return state_.ProcessLost(Ending::kHungUp, "the terminal is gone", MonotonicSeconds());
    const double now = MonotonicSeconds();
    if (frame->number == SIGTERM && !terms_.ByConsole(now)) return;
    return state_.Signalled(static_cast<int>(frame->number), now);
  }
  if (frame->kind == FrameKind::kOutputGone) {
    return state_.ProcessLost(Ending::kOutputGone, "nobody reads hvdrun's stdout any more",
                              MonotonicSeconds());
  }
  if (frame->kind == FrameKind::kOutputTaken) {
    console_.Taken(frame->number);
    return SendConsole();
  }
  if (frame->kind == FrameKind::kOutputLost) {
    state_.mutable_facts()->lost_output.push_back(std::move(frame->text));
    return;
  }
  if (frame->kind == FrameKind::kMaySkip) {
    skips_ = frame->number;
    for (size_t host = 0; launched_ && host < ports_.size(); ++host) SendSkips(host);
    return;
  }
  if (frame->kind == FrameKind::kDrained) drained_ = true;
  if (frame->kind != FrameKind::kStdin) return;
  v1::Command command;
  command.mutable_stdin_chunk()->set_data(std::move(frame->text));
  command.mutable_stdin_chunk()->set_end(frame->end);
  for (size_t host = 0; host < ports_.size(); ++host) {
    if (IsMeantForStdin(host)) links_.Send(host, command);
  }
}

void Driver::SendSkips(int host) {
  v1::Command command;
  command.mutable_skip_output()->set_out((skips_ & kSkipOut) != 0);
  command.mutable_skip_output()->set_err((skips_ & kSkipErr) != 0);
  links_.Send(host, command);
}

// Its first readers keep it: nobody who comes later gets what is left of it.
bool Driver::IsMeantForStdin(size_t host) const {
  if (options_.stdin_rank < 0) return options_.stdin_rank == -2 && host < stdin_hosts_;
  const auto& ranks = state_.facts().ranks;
  const size_t reader = options_.stdin_rank;
  return reader < ranks.size() && ranks[reader].host == static_cast<int>(host);
}

Frame NoticeOf(const std::string& text) {
  Frame frame;
  frame.kind = FrameKind::kNotice;
  frame.text = absl::StrCat("hvdrun: ", text.substr(0, kMaxFrameText - 16),
                            !text.empty() && text.back() == '\n' ? "" : "\n");
  return frame;
}

void Driver::Say(const std::string& text) {
  console_.Put(NoticeOf(text));
  SendConsole();
}

void Driver::SendConsole() {
  console_.Flush();
  const bool want = console_.wants_room();
  if (want == console_writable_watched_ || console_.fd() < 0) return;
  console_writable_watched_ = want;
  Watch(console_.fd(), want ? EPOLLIN | EPOLLOUT : EPOLLIN, DriverSource::kConsole);
}

void Driver::TakeArrivals() {
  auto arrivals = links_.Take();
  // The messages that hosts have sent while hvdrun was paused are judged by that pause, wherever it
  // fell.
  NotePause(0);
  for (Arrival& arrival : arrivals) {
    switch (arrival.kind) {
      case Arrival::kBeat:
        timeline_.Heard(arrival.host, arrival.trip);
        break;
      case Arrival::kEvent:
        OnEvent(arrival.host, arrival.event);
        break;
      case Arrival::kOutput:
        OnOutput(arrival.host, &arrival.output);
        break;
      case Arrival::kStore:
        store_.Take(arrival.host, arrival.store, MonotonicSeconds());
        break;
      case Arrival::kEnded:
        OnLinkEnded(arrival.host);
        break;
    }
  }
}

void Driver::OnEvent(int host, const v1::Event& event) {
  if (event.has_timeline_asked()) return OnTimelineAsked(host, event.timeline_asked());
  if (event.kind_case() == v1::Event::kStdinCredit) {
    ports_[host].stdin_taken += event.stdin_credit().bytes();
    return GiveStdinRoom();
  }
  state_.Heard(host, event, MonotonicSeconds());
}

void Driver::OnOutput(int host, v1::OutputChunk* taken) {
  const v1::OutputChunk& chunk = *taken;
  ports_[host].output_received += chunk.data().size();
  if (chunk.is_timeline()) {
    timeline_.Take(host, taken);
    return;
  }
  if (!chunk.file_lost().empty()) {
    state_.mutable_facts()->lost_files.push_back(
        absl::StrCat("host ", HostName(host), ": ", Printable(chunk.file_lost())));
  }
  const int index = state_.facts().IndexOf(chunk.member());
  if (index < 0) return;
  TellRank(index);
  size_t at = 0;
  do {
    Frame frame;
    frame.kind = FrameKind::kOutput;
    frame.index = index;
    frame.is_stderr = chunk.is_stderr();
    frame.text = chunk.data().substr(at, kMaxFrameText);
    at += frame.text.size();
    const bool last = at >= chunk.data().size();
    frame.number = last ? chunk.skipped_lines() : 0;
    frame.end = last && chunk.end();
    console_.PutInOrder(std::move(frame));
  } while (at < chunk.data().size());
  SendConsole();
  state_.StreamMoved(index, chunk.end(), MonotonicSeconds());
}

// Tells the console which rank this member of an elastic job is by now, where it does not know.
void Driver::TellRank(int index) {
  if (!options_.elastic) return;
  const RankFact& fact = state_.facts().ranks[index];
  if (told_ranks_.size() <= static_cast<size_t>(index)) told_ranks_.resize(index + 1, -2);
  if (std::exchange(told_ranks_[index], fact.rank) == fact.rank) return;
  Frame frame;
  frame.kind = FrameKind::kRank;
  frame.index = index;
  frame.number = fact.rank < 0 ? index : fact.rank;
  frame.text = HostName(fact.host);
  console_.PutInOrder(std::move(frame));
}

void Driver::OnLinkEnded(int host) {
  ports_[host].link_ended = true;
  if (options_.elastic) AskSpawner(FrameKind::kKill, host);  // its shell may live on
  TakeSpawner();  // its death comes before that of its children
  timeline_.HostEnded(host);
  store_.HostEnded(host);
  if (state_.facts().hosts[host].phase == HostFact::kGone) return;
  state_.HostLost(host, "the connection to its hvdd closed", MonotonicSeconds());
  if (!ports_[host].ended.cause.empty()) {
    state_.HostDetail(host, ports_[host].ended, MonotonicSeconds());
  }
}

// Hosts whose link has ended while its remote shell lives on.
void Driver::ExplainLinks() {
  for (size_t host = 0; host < ports_.size(); ++host) {
    if (!ports_[host].greeted || !ports_[host].ended.cause.empty()) continue;
    const std::string shell = ShellName(options_, targets_[host]);
    if (!ports_[host].link_ended || shell.empty()) continue;
    state_.HostDetail(host, ExplainForeignBytes(shell, HostName(host)), MonotonicSeconds());
  }
}

void Driver::Acknowledge() {
  if (console_.is_slow()) return;
  for (size_t host = 0; host < ports_.size(); ++host) {
    HostPort& port = ports_[host];
    if (port.output_acknowledged == port.output_received) continue;
    port.output_acknowledged = port.output_received;
    links_.AckOutput(host, port.output_received);
  }
}

// Stdin is read from the person only as fast as the slowest of its ranks takes it.
void Driver::GiveStdinRoom() {
  if (!launched_ || options_.stdin_rank == -1) return;
  uint64_t taken = std::numeric_limits<uint64_t>::max();
  for (size_t host = 0; host < ports_.size(); ++host) {
    const bool lost = options_.elastic && state_.facts().hosts[host].phase == HostFact::kGone;
    if (IsMeantForStdin(host) && !lost) taken = std::min(taken, ports_[host].stdin_taken);
  }
  if (taken == std::numeric_limits<uint64_t>::max()) return;  // nobody is left to read it
  Frame frame;
  frame.kind = FrameKind::kStdinRoom;
  frame.number = taken + kStdinWindow;
  console_.Put(std::move(frame));
  SendConsole();
}

}  // namespace hvd
