// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/dialer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvd::rt {
namespace {

using Phase = Attempt::Phase;

constexpr auto kLongestPause = std::chrono::seconds(1);

}  // namespace

Dialer::Dialer(DialPlan plan, Poller* poller, DialerOwner* owner)
    : plan_(std::move(plan)), poller_(poller), owner_(owner), lines_(plan_.addresses.size()) {
  AttemptOwner* const self = this;
  for (size_t i = 0; i < lines_.size(); ++i) {
    lines_[i].attempt = std::make_unique<Attempt>(
        AttemptPlan{plan_.secret, plan_.name, plan_.addresses[i]}, poller_, self);
  }
  if (!lines_.empty()) lines_[0].due = Clock::time_point::min();
}

// One of them may be what the poller calls at the moment, others may be next.
Dialer::~Dialer() {
  for (Line& line : lines_) {
    line.attempt->Rest();
    poller_->Bury(std::move(line.attempt));
  }
}

size_t Dialer::LineOf(const Attempt* attempt) const {
  const auto found = std::find_if(lines_.begin(), lines_.end(), [attempt](const Line& line) {
    return line.attempt.get() == attempt;
  });
  return static_cast<size_t>(found - lines_.begin());
}

Clock::time_point Dialer::due() const {
  Clock::time_point due = Clock::time_point::max();
  for (const Line& line : lines_) due = std::min(due, line.due);
  return due;
}

void Dialer::OnTime(Clock::time_point now) {
  bool any = false;
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (now < lines_[i].due) continue;
    any = true;
    Due(i, now);
  }
  if (any) MaybeGiveUp(now);
}

void Dialer::Due(size_t i, Clock::time_point now) {
  switch (lines_[i].attempt->phase()) {
    case Phase::kRest:
      return Call(i, now);
    case Phase::kConnection:
      return NoteFailure(i, absl::DeadlineExceededError("no answer"), now);
    case Phase::kMayAnswer:
      return AnswerOrWait(i, now);
    case Phase::kChallenge:  // reached: the peer looks at its door when it waits for something
    case Phase::kConfirmation:
      lines_[i].due = Clock::time_point::max();
      return;
  }
}

void Dialer::Call(size_t i, Clock::time_point now) {
  Line& line = lines_[i];
  line.since = now;
  const absl::Status begun = line.attempt->Begin();
  if (!begun.ok()) return NoteFailure(i, begun, now);
  line.due = now + plan_.patience;
  LetNextCall(i, now + plan_.head_start);
  line.called = true;
}

// Each lets the next one begin, when it has become less likely itself.
void Dialer::LetNextCall(size_t i, Clock::time_point when) {
  if (i + 1 < lines_.size() && !lines_[i + 1].called) lines_[i + 1].due = when;
}

void Dialer::OnConnected(Attempt* attempt) {
  const size_t i = LineOf(attempt);
  lines_[i].since = Clock::now();
  lines_[i].due = Clock::time_point::max();
  LetNextCall(i, lines_[i].since + plan_.patience);
}

void Dialer::OnChallenged(Attempt* attempt) {
  const Clock::time_point now = Clock::now();
  const size_t i = LineOf(attempt);
  lines_[i].due = now + plan_.head_start;
  if (!MustWait(i)) AnswerOrWait(i, now);
  MaybeGiveUp(now);
}

// A peer that was busy speaks on all its connections at once: a likelier address goes first. Two
// answers at once would be one too many: the peer takes the first and drops the second.
bool Dialer::MustWait(size_t i) const {
  for (size_t other = 0; other < lines_.size(); ++other) {
    const Phase phase = lines_[other].attempt->phase();
    if (other != i && phase == Phase::kConfirmation) return true;
    if (other < i && (phase == Phase::kChallenge || phase == Phase::kMayAnswer)) return true;
  }
  return false;
}

// It has waited for the likelier ones, if there are any.
void Dialer::AnswerOrWait(size_t i, Clock::time_point now) {
  const bool answered = std::any_of(lines_.begin(), lines_.end(), [](const Line& line) {
    return line.attempt->phase() == Phase::kConfirmation;
  });
  Line& line = lines_[i];
  line.due = answered ? now + plan_.head_start : Clock::time_point::max();
  if (answered) return;
  line.since = now;  // what fails from here on did not fail while the peer was busy
  if (absl::Status said = line.attempt->Answer(); !said.ok()) NoteFailure(i, said, now);
}

void Dialer::OnProven(Attempt* attempt, Socket socket) {
  owner_->OnDialed(this, std::move(socket), attempt->address().at.Text());
}

void Dialer::OnAttemptFailed(Attempt* attempt, const absl::Status& why) {
  const Clock::time_point now = Clock::now();
  NoteFailure(LineOf(attempt), why, now);
  MaybeGiveUp(now);
}

void Dialer::NoteFailure(size_t i, const absl::Status& why, Clock::time_point now) {
  Line& line = lines_[i];
  // A peer that has been reached and was busy has not failed all the while.
  const bool was_busy =
      line.attempt->phase() == Phase::kChallenge && now - line.since >= kLongestPause;
  line.failing_since = was_busy ? now : std::min(line.failing_since, line.since);
  line.said = Describe(line, why);
  line.attempt->Rest();
  line.due = now + line.pause;
  line.pause = std::min<Clock::duration>(2 * line.pause, kLongestPause);
  LetNextCall(i, now);
  line.called = true;
}

// "10.0.0.1:4711 (its eth0; from eth1 here): connecting: Connection refused"
std::string Dialer::Describe(const Line& line, const absl::Status& why) const {
  const PeerAddress& to = line.attempt->address();
  const std::string& from = line.attempt->from();
  std::string way = to.device.empty() ? "" : absl::StrCat("its ", to.device);
  const auto own = plan_.devices.find(from);
  if (own != plan_.devices.end()) {
    absl::StrAppend(&way, way.empty() ? "" : "; ", "from ", own->second, " here");
  }
  return absl::StrCat(to.at.Text(), way.empty() ? "" : absl::StrCat(" (", way, ")"), ": ",
                      why.message());
}

bool Dialer::HasFailed(const Line& line, Clock::time_point now) const {
  const Phase phase = line.attempt->phase();
  if (phase != Phase::kRest && phase != Phase::kConnection) return false;
  return line.failing_since != Clock::time_point::max() && now - line.failing_since >= plan_.limit;
}

void Dialer::MaybeGiveUp(Clock::time_point now) {
  const bool all = std::all_of(lines_.begin(), lines_.end(),
                               [&](const Line& line) { return HasFailed(line, now); });
  if (!all) return;
  std::vector<std::string> said;
  for (const Line& line : lines_) said.push_back(line.said);
  owner_->OnDialFailed(this, absl::StrJoin(said, "; "));
}

}  // namespace hvd::rt
