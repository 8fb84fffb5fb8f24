// SPDX-License-Identifier: Apache-2.0
// Makes a connection to a peer and proves it. The peer's addresses are called in their order, each
// with a head start over the next one, again and again for a while; the first that proves itself is
// taken. Which host has an address nobody needs to know: another one fails at the proof. Guarded by
// the transport's mutex.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/tcp/attempt.h"

namespace hvd::rt {

struct DialPlan {
  std::string secret;
  LaneName name;
  std::vector<PeerAddress> addresses;  // at least one, the likeliest first
  Clock::duration limit;               // how long everything may fail before it is given up
  // This host's addresses and their interfaces, for messages.
  std::map<std::string, std::string> devices = {};
  // How long an address is ahead of the next one: before it is connected; before it says a word,
  // then.
  Clock::duration head_start{std::chrono::milliseconds(250)};
  Clock::duration patience{std::chrono::seconds(5)};
};

class Dialer;

class DialerOwner {
 public:
  virtual ~DialerOwner() = default;
  // Both are the last thing that a dialer does; it may be destroyed by them.
  virtual void OnDialed(Dialer* dialer, Socket socket, const std::string& where) = 0;
  virtual void OnDialFailed(Dialer* dialer, const std::string& why) = 0;
};

class Dialer : private AttemptOwner {
 public:
  Dialer(DialPlan plan, Poller* poller, DialerOwner* owner);
  ~Dialer() override;

  const LaneName& name() const { return plan_.name; }
  // Does what is due, the first call too. The next time that something is: due().
  void OnTime(Clock::time_point now);
  Clock::time_point due() const;

 private:
  // One address: what is under way there, and how it went so far.
  struct Line {
    std::unique_ptr<Attempt> attempt;
    Clock::time_point due = Clock::time_point::max();
    bool called = false;
    Clock::time_point since;  // when the newest call began, was connected, or was answered
    Clock::time_point failing_since = Clock::time_point::max();
    Clock::duration pause{std::chrono::milliseconds(50)};
    std::string said = {};  // how the newest call ended
  };

  void OnConnected(Attempt* attempt) override;
  void OnChallenged(Attempt* attempt) override;
  void OnProven(Attempt* attempt, Socket socket) override;
  void OnAttemptFailed(Attempt* attempt, const absl::Status& why) override;

  size_t LineOf(const Attempt* attempt) const;
  void Due(size_t line, Clock::time_point now);
  void Call(size_t line, Clock::time_point now);
  void LetNextCall(size_t line, Clock::time_point when);
  bool MustWait(size_t line) const;
  void AnswerOrWait(size_t line, Clock::time_point now);
  void NoteFailure(size_t line, const absl::Status& why, Clock::time_point now);
  std::string Describe(const Line& line, const absl::Status& why) const;
  bool HasFailed(const Line& line, Clock::time_point now) const;
  void MaybeGiveUp(Clock::time_point now);

  const DialPlan plan_;
  Poller* const poller_;
  DialerOwner* const owner_;
  std::vector<Line> lines_;
};

}  // namespace hvd::rt
