// SPDX-License-Identifier: Apache-2.0
// A job's state table for tests. Member n is rank n - 1, as in every job whose members stay.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "cli/job/job_state.h"

namespace hvd::cli {

inline uint64_t MemberOf(int rank) { return static_cast<uint64_t>(rank) + 1; }

// How a rank ends.
struct RankEnding {
  int code = 0;
  int signal = 0;
  bool after_abort = false;
  bool joined = true;
  bool left = true;
  double told_after_s = 0;
};

// The table with two hosts (a: ranks 0-1, b: rank 2) and what it wants done, as words.
struct DriverTable {
  explicit DriverTable(JobPolicy policy = {}) : state(Topology({{"a", 2}, {"b", 1}}), policy, 0) {}

  std::string Wants() {
    std::string words;
    for (const Action& action : state.TakeActions()) {
      if (!words.empty()) words += " ";
      if (action.kind == Action::kPrepare) words += "prepare";
      if (action.kind == Action::kSay) words += "say";
      if (action.kind != Action::kSend) continue;
      const v1::Command& command = action.command;
      if (command.has_epoch_propose()) {
        words += "propose" + std::to_string(command.epoch_propose().epoch());
      }
      if (command.has_spawn_slots()) words += "spawn";
      if (command.has_epoch_table()) words += "table";
      if (command.has_epoch_go()) words += "go";
      if (command.has_epoch_abort()) words += "abort";
      if (command.has_stop()) {
        words += command.stop().kill() ? "kill" : command.stop().may_agree() ? "close" : "stop";
        stop_cause = command.stop().cause();
      }
      if (command.has_signal()) words += "signal";
    }
    return words;
  }

  void Start() {
    for (const int host : {0, 1}) state.HostGreeted(host, 0.01);
    REQUIRE(Wants() == "prepare propose1 spawn spawn");
    for (const int host : {0, 1}) {
      v1::Event event;
      event.mutable_launched();
      state.Heard(host, event, 0.02);
    }
    for (const int rank : {0, 1, 2}) {
      v1::Event event;
      event.mutable_rank_started()->set_member(MemberOf(rank));
      state.Heard(rank / 2, event, 0.03);
    }
    REQUIRE(Wants().empty());
  }

  void Exit(int rank, const RankEnding& end = {}) {
    v1::Event event;
    v1::RankExited* exit = event.mutable_rank_exited();
    exit->set_member(MemberOf(rank));
    exit->set_exit_code(end.code);
    exit->set_signal(end.signal);
    exit->set_after_abort(end.after_abort);
    exit->set_joined(end.joined);
    exit->set_left(end.left);
    exit->set_told_after_us(static_cast<uint64_t>(end.told_after_s * 1e6));
    state.Heard(rank / 2, event, now);
    for (int stream = 0; stream < 2; ++stream) state.StreamMoved(rank, true, now);
  }

  // Tells of the death, which comes before the exit; what is told of `exit` later is not known yet.
  void Died(v1::MemberDied died) {
    v1::Event event;
    *event.mutable_member_died() = std::move(died);
    const int host = static_cast<int>(event.member_died().member() - 1) / 2;
    state.Heard(host, event, now);
  }

  void Stopped(int host) {
    v1::Event event;
    event.mutable_stopped();
    state.Heard(host, event, now);
  }

  Verdict Judged() const { return Judge(state.facts()); }

  JobState state;
  std::string stop_cause;  // of the newest that was wanted
  double now = 1;
};

}  // namespace hvd::cli
