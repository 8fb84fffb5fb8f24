// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/console_talk.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "cli/report/start_status.h"

namespace hvd::cli {
namespace {

constexpr double kLookS = 0.1;

}  // namespace

Frame NoticeOf(const std::string& text) {
  Frame frame;
  frame.kind = FrameKind::kNotice;
  frame.text = absl::StrCat("hvdrun: ", text.substr(0, kMaxFrameText - 16),
                            !text.empty() && text.back() == '\n' ? "" : "\n");
  return frame;
}

ConsoleTalk::ConsoleTalk(Descriptor socket, const Parts& parts)
    : console_(std::move(socket)), parts_(parts) {}

void ConsoleTalk::Begin() { parts_.poll->Watch({console_.fd(), EPOLLIN}, DriverSource::kConsole); }

void ConsoleTalk::Take() {
  for (;;) {
    Frame frame;
    const FrameResult result = ReceiveFrame(console_.fd(), &frame);
    if (result == FrameResult::kWouldBlock) return;
    if (result == FrameResult::kGone) {
      parts_.poll->Forget(console_.fd());
      console_.Close();
      return parts_.state->ProcessLost(Ending::kConsoleLost, "hvdrun's console process died",
                                       MonotonicSeconds());
    }
    OnFrame(&frame);
  }
}

void ConsoleTalk::OnFrame(Frame* frame) {
  const double now = MonotonicSeconds();
  switch (frame->kind) {
    case FrameKind::kSignal:
      return OnSignal(*frame, now);
    case FrameKind::kOutputGone:
      return parts_.state->ProcessLost(Ending::kOutputGone, "nobody reads hvdrun's stdout any more",
                                       now);
    case FrameKind::kOutputTaken:
      console_.Taken(frame->number);
      return Send();
    case FrameKind::kOutputLost:
      parts_.state->mutable_facts()->lost_output.push_back(std::move(frame->text));
      return;
    case FrameKind::kMaySkip:
      return parts_.feed->MaySkip(frame->number);
    case FrameKind::kDrained:
      drained_ = true;
      return;
    case FrameKind::kStdin:
      return parts_.feed->Give(std::move(frame->text), frame->end);
    default:
      return;
  }
}

void ConsoleTalk::OnSignal(const Frame& frame, double now) {
  if (frame.end) return parts_.state->ProcessLost(Ending::kHungUp, "the terminal is gone", now);
  if (frame.number == SIGTERM && !terms_.ByConsole(now)) return;
  parts_.state->Signalled(static_cast<int>(frame.number), now);
}

void ConsoleTalk::TermOfHelper() {
  const double now = MonotonicSeconds();
  if (terms_.ByHelper(now)) parts_.state->Signalled(SIGTERM, now);
}

void ConsoleTalk::Put(Frame frame) {
  console_.Put(std::move(frame));
  Send();
}

void ConsoleTalk::Send() {
  console_.Flush();
  const bool want = console_.wants_room();
  if (want == writable_watched_ || console_.fd() < 0) return;
  writable_watched_ = want;
  const uint32_t events = want ? EPOLLIN | EPOLLOUT : EPOLLIN;
  parts_.poll->Watch({console_.fd(), events}, DriverSource::kConsole);
}

void ConsoleTalk::GiveStdinRoom() {
  const std::optional<uint64_t> room = parts_.feed->NextRoom();
  if (!room.has_value()) return;
  Frame frame;
  frame.kind = FrameKind::kStdinRoom;
  frame.number = *room;
  Put(std::move(frame));
}

void ConsoleTalk::TellEnding() {
  if (std::exchange(ending_told_, true)) return;
  Frame ending;
  ending.kind = FrameKind::kEnding;
  Put(std::move(ending));
}

// ---- the status line ----

void ConsoleTalk::ShowStatus(double now) {
  shows_status_ = true;
  status_at_ = now + kStatusAfterS;
}

void ConsoleTalk::TellStatus(double now) {
  if (!shows_status_) return;
  const bool over = !parts_.state->starting();
  if (over && status_.empty()) status_at_ = std::numeric_limits<double>::infinity();
  if (over ? status_.empty() : now < status_at_) return;
  if (!over) status_at_ = now + kLookS;
  std::string words = over ? "" : StartWords(parts_.state->facts());
  if (words == status_) return;
  status_ = words;
  Frame frame;
  frame.kind = FrameKind::kStatus;
  frame.text = std::move(words);
  Put(std::move(frame));
}

// ---- the end ----

void ConsoleTalk::WaitFor(short events) {
  pollfd wait = {console_.fd(), events, 0};
  poll(&wait, 1, -1);
}

void ConsoleTalk::Drain() {
  Frame drain;
  drain.kind = FrameKind::kDrain;
  console_.PutInOrder(std::move(drain));
  for (Send(); !drained_ && console_.fd() >= 0; Send()) {
    WaitFor(console_.wants_room() ? POLLIN | POLLOUT : POLLIN);
    Take();
  }
}

void ConsoleTalk::Flush() {
  for (Send(); !console_.empty(); Send()) WaitFor(POLLOUT);
}

}  // namespace hvd::cli
