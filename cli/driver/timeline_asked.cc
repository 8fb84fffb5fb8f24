// SPDX-License-Identifier: Apache-2.0
// The timeline in the driver's loop: begun by hvdrun's option or by a rank's hvd_start_timeline.
#include <sys/epoll.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/driver/loop.h"

namespace hvd {
namespace {

constexpr double kPatienceS = 2;  // for the last of the hosts' streams, and for the file

}  // namespace

// Edges: we look each time that the loop turns, and leave the event's count as it is.
void Driver::BeginTimeline(const std::string& path) {
  timeline_.Begin(path, MonotonicSeconds());
  Watch(timeline_.event_fd(), EPOLLIN | EPOLLET, DriverSource::kTimeline);
}

// Once the file is open, or cannot be opened; once it is complete, or cannot be completed.
void Driver::LookAtTimeline(double now) {
  if (const auto ended = timeline_.TakeEnded(now)) AnswerTimelineEnded(*ended);
  const std::optional<absl::Status> begun = timeline_.TakeBegun(now);
  if (!begun) return;
  const std::string error(begun->message());
  const std::optional<TimelineAsk> asker = std::exchange(timeline_asker_, std::nullopt);
  if (asker) {
    v1::SetTimeline set;
    set.set_error(error);
    set.set_on(true);
    AnswerTimeline(*asker, std::move(set));
  } else if (!error.empty()) {
    Say(absl::StrCat(error, "; the job runs without it"));
    state_.mutable_facts()->lost_files.push_back(error);
  }
  for (const TimelineAsk& waiting : std::exchange(timeline_asks_, {})) {
    OnTimelineAsked(waiting.host, waiting.asked);
  }
}

// The whole job records into one file, whoever asks for it; asking for the one that is being
// written is granted.
void Driver::OnTimelineAsked(int host, const v1::TimelineAsked& asked) {
  if (timeline_.beginning()) return Postpone({host, asked});
  std::string path = asked.path();
  if (!path.empty()) path = (std::filesystem::path(options_.directory) / path).lexically_normal();
  v1::SetTimeline set;
  set.set_on(!path.empty());
  if (path.empty() && timeline_.on()) {
    // The answer comes when the file is whole.
    timeline_enders_.push_back(asked.member());
    if (timeline_.ending()) return;
    timeline_.BeginEnd();
    return SendTimeline(host, std::move(set));
  }
  if (timeline_.ending()) {
    set.set_error("the timeline is being ended; ask again after that");
  } else if (!path.empty() && !(timeline_.on() && path == timeline_.path())) {
    timeline_asker_ = {host, asked};
    return BeginTimeline(path);
  }
  AnswerTimeline({host, asked}, std::move(set));
}

// A rank waits for its answer; one that does not gets one.
void Driver::Postpone(const TimelineAsk& ask) {
  const bool asked_before = std::any_of(
      timeline_asks_.begin(), timeline_asks_.end(),
      [&](const TimelineAsk& other) { return other.asked.member() == ask.asked.member(); });
  if (!asked_before) timeline_asks_.push_back(ask);
}

void Driver::AnswerTimeline(const TimelineAsk& ask, v1::SetTimeline set) {
  if (!set.error().empty()) Say(set.error());
  set.set_answer(true);
  set.set_member(ask.asked.member());
  SendTimeline(ask.host, std::move(set));
}

// To all hosts; an error only to the one that asked.
void Driver::SendTimeline(int host, v1::SetTimeline set) {
  v1::Command command;
  *command.mutable_set_timeline() = std::move(set);
  for (size_t each = 0; each < ports_.size(); ++each) {
    const bool meant = command.set_timeline().error().empty() || static_cast<int>(each) == host;
    if (meant) links_.Send(each, command);
  }
}

void Driver::AnswerTimelineEnded(const absl::Status& ended) {
  for (const uint64_t member : std::exchange(timeline_enders_, {})) {
    const int index = state_.facts().IndexOf(member);
    if (index < 0) continue;
    v1::Command command;
    command.mutable_set_timeline()->set_answer(true);
    command.mutable_set_timeline()->set_member(member);
    command.mutable_set_timeline()->set_error(std::string(ended.message()));
    links_.Send(state_.facts().ranks[index].host, command);
  }
}

// The job is over; what its ranks recorded last may be under way.
void Driver::WaitForTimeline() {
  give_up_at_ = MonotonicSeconds() + kPatienceS;
  for (size_t host = 0; host < ports_.size(); ++host) {
    // Nothing comes from one that never ran or is lost.
    if (state_.facts().hosts[host].fault != HostFact::kNone) timeline_.HostEnded(host);
  }
  while (launched_ && timeline_.open() && MonotonicSeconds() < give_up_at_) {
    Turn();
    CarryOut();
  }
  const std::string wrong = timeline_.Finish(kPatienceS);
  if (wrong.empty()) return;
  Say(wrong);
  state_.mutable_facts()->lost_files.push_back(wrong);
}

}  // namespace hvd
