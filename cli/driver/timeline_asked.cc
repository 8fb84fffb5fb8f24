// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/timeline_asked.h"

#include <sys/epoll.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace hvd::cli {

// Edges: we look each time that the loop turns, and leave the event's count as it is.
void TimelineAsks::Begin(const std::string& path) {
  recording_.Begin(path, MonotonicSeconds());
  parts_.poll->Watch({recording_.event_fd(), EPOLLIN | EPOLLET}, DriverSource::kTimeline);
}

void TimelineAsks::Look(double now) {
  if (const auto ended = recording_.TakeEnded(now)) AnswerEnded(*ended);
  const std::optional<absl::Status> begun = recording_.TakeBegun(now);
  if (begun) NoteBegun(std::string(begun->message()));
}

void TimelineAsks::NoteBegun(const std::string& error) {
  const std::optional<Ask> asker = std::exchange(asker_, std::nullopt);
  if (asker) {
    v1::SetTimeline set;
    set.set_error(error);
    set.set_on(true);
    Answer(*asker, std::move(set));
  } else if (!error.empty()) {
    parts_.console->Say(absl::StrCat(error, "; the job runs without it"));
    parts_.state->mutable_facts()->lost_files.push_back(error);
  }
  for (const Ask& waiting : std::exchange(asks_, {})) {
    Asked(waiting.host, waiting.asked);
  }
}

// The whole job records into one file, whoever asks for it; asking for the one that is being
// written is granted.
void TimelineAsks::Asked(int host, const v1::TimelineAsked& asked) {
  if (recording_.beginning()) return Postpone({host, asked});
  std::string path = asked.path();
  if (!path.empty())
    path = (std::filesystem::path(parts_.options->directory) / path).lexically_normal();
  v1::SetTimeline set;
  set.set_on(!path.empty());
  if (path.empty() && recording_.on()) {
    // The answer comes when the file is whole.
    enders_.push_back(asked.member());
    if (recording_.ending()) return;
    recording_.BeginEnd();
    return Send(host, std::move(set));
  }
  if (recording_.ending()) {
    set.set_error("the timeline is being ended; ask again after that");
  } else if (!path.empty() && !(recording_.on() && path == recording_.path())) {
    asker_ = {host, asked};
    return Begin(path);
  }
  Answer({host, asked}, std::move(set));
}

// A rank waits for its answer; one that does not gets one.
void TimelineAsks::Postpone(const Ask& ask) {
  const bool asked_before = std::any_of(asks_.begin(), asks_.end(), [&](const Ask& other) {
    return other.asked.member() == ask.asked.member();
  });
  if (!asked_before) asks_.push_back(ask);
}

void TimelineAsks::Answer(const Ask& ask, v1::SetTimeline set) {
  if (!set.error().empty()) parts_.console->Say(set.error());
  set.set_answer(true);
  set.set_member(ask.asked.member());
  Send(ask.host, std::move(set));
}

// To all hosts; an error only to the one that asked.
void TimelineAsks::Send(int host, v1::SetTimeline set) {
  v1::Command command;
  *command.mutable_set_timeline() = std::move(set);
  for (int each = 0; each < parts_.hosts->count(); ++each) {
    const bool meant = command.set_timeline().error().empty() || each == host;
    if (meant) parts_.links->Send(each, command);
  }
}

void TimelineAsks::AnswerEnded(const absl::Status& ended) {
  for (const uint64_t member : std::exchange(enders_, {})) {
    const int index = parts_.state->facts().IndexOf(member);
    if (index < 0) continue;
    v1::Command command;
    command.mutable_set_timeline()->set_answer(true);
    command.mutable_set_timeline()->set_member(member);
    command.mutable_set_timeline()->set_error(std::string(ended.message()));
    parts_.links->Send(parts_.state->facts().ranks[index].host, command);
  }
}

void TimelineAsks::NoteEpochs() {
  const JobFacts& facts = parts_.state->facts();
  if (facts.epochs.size() == epochs_told_) return;
  epochs_told_ = facts.epochs.size();
  recording_.BeginEpoch({facts.epochs.back().number, facts.topology,
                         parts_.state->members().hosts(),
                         static_cast<int64_t>(MonotonicSeconds() * 1e9)});
}

void TimelineAsks::EndLostHosts() {
  const auto& hosts = parts_.state->facts().hosts;
  for (size_t host = 0; host < hosts.size(); ++host) {
    if (hosts[host].fault != HostFact::kNone) recording_.HostEnded(static_cast<int>(host));
  }
}

void TimelineAsks::Finish(double patience_s) {
  const std::string wrong = recording_.Finish(patience_s);
  if (wrong.empty()) return;
  parts_.console->Say(wrong);
  parts_.state->mutable_facts()->lost_files.push_back(wrong);
}

}  // namespace hvd::cli
