// SPDX-License-Identifier: Apache-2.0
// An elastic job's state table for tests, and what it wants done, as words.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cli/job/job_state.h"

namespace hvd::cli {

struct ElasticTable {
  explicit ElasticTable(int np, const ElasticOptions& options = {}, const StallLimits& stall = {})
      : state(Topology(), Policy(np, options, stall), 0) {}

  static JobPolicy Policy(int np, const ElasticOptions& options, const StallLimits& stall) {
    JobPolicy policy;
    policy.stall = stall;
    policy.np = np;
    policy.elastic = options;
    return policy;
  }

  // "reach0 prepare0 spawn0 propose1@0 go1@0 abort1@1 change1@0 retire0@1 remove1@0 stop@1 drop1"
  std::string Wants() {
    std::string words;
    for (const Action& action : state.TakeActions()) {
      const std::string host = std::to_string(action.host);
      std::string word;
      if (action.kind == Action::kSay) said.push_back(action.text);
      if (action.kind == Action::kPrepare) word = "prepare" + host;
      if (action.kind == Action::kReach) word = "reach" + host;
      if (action.kind == Action::kDrop) word = "drop" + host;
      if (action.kind == Action::kSend) word = Word(action.command) + "@" + host;
      if (word.empty()) continue;
      words += (words.empty() ? "" : " ") + word;
    }
    return words;
  }

  std::string Word(const v1::Command& command) {
    if (command.has_epoch_propose()) {
      proposal = command.epoch_propose();
      return "propose" + std::to_string(proposal.epoch());
    }
    if (command.has_spawn_slots()) return "spawn";
    if (command.has_epoch_table()) return "table";
    if (command.has_epoch_go()) return "go" + std::to_string(command.epoch_go().epoch());
    if (command.has_epoch_abort()) return "abort" + std::to_string(command.epoch_abort().epoch());
    if (command.has_epoch_change())
      return "change" + std::to_string(command.epoch_change().epoch());
    if (command.has_retire_slot()) {
      return (command.retire_slot().removed() ? "remove" : "retire") +
             std::to_string(command.retire_slot().slot());
    }
    if (command.has_stop()) return "stop";
    if (command.has_ask_pending()) return "ask";
    return "?";
  }

  void Stand(uint64_t member, uint64_t after) {
    v1::Event event;
    event.mutable_member_stands()->set_member(member);
    event.mutable_member_stands()->set_after_epoch(after);
    state.Heard(HostOf(member), event, now);
  }
  void Quiet(int host, uint64_t epoch, uint64_t commit) {
    v1::Event event;
    event.mutable_host_quiet()->set_epoch(epoch);
    event.mutable_host_quiet()->set_commit(commit);
    event.mutable_host_quiet()->set_before(commit > 0 ? commit - 1 : 0);
    state.Heard(host, event, now);
  }
  // The hosts do what the proposal asks of them.
  void Meet() {
    const v1::EpochPropose meets = proposal;
    for (const v1::EpochHost& host : meets.hosts()) {
      v1::Event event;
      event.mutable_host_addresses()->set_epoch(meets.epoch());
      for (int i = 0; i < host.members_size(); ++i) {
        event.mutable_host_addresses()->add_addresses();
      }
      state.Heard(static_cast<int>(host.host()), event, now);
    }
    for (const v1::EpochHost& host : meets.hosts()) {
      v1::Event event;
      event.mutable_host_ready()->set_epoch(meets.epoch());
      state.Heard(static_cast<int>(host.host()), event, now);
    }
  }
  void Died(uint64_t member, int signal, uint64_t epoch, uint64_t commit) {
    v1::Event event;
    event.mutable_member_died()->set_member(member);
    event.mutable_member_died()->set_signal(signal);
    event.mutable_member_died()->set_epoch(epoch);
    event.mutable_member_died()->set_commit(commit);
    state.Heard(HostOf(member), event, now);
  }
  void Exited(uint64_t member, int code, int signal = 0) {
    v1::Event event;
    v1::RankExited* exit = event.mutable_rank_exited();
    exit->set_member(member);
    exit->set_exit_code(code);
    exit->set_signal(signal);
    exit->set_joined(true);
    exit->set_left(code == 0 && signal == 0);
    state.Heard(HostOf(member), event, now);
    for (int stream = 0; stream < 2; ++stream) {
      state.StreamMoved(static_cast<int>(member) - 1, true, now);
    }
  }
  // By the word of its host, which has not heard how it ended if `worker` says nothing.
  void Broke(uint64_t member, const v1::WorkerEnd& worker, uint64_t commit = 0) {
    v1::Event event;
    event.mutable_rank_broke()->set_member(member);
    event.mutable_rank_broke()->set_message("its worker died");
    *event.mutable_rank_broke()->mutable_worker() = worker;
    event.mutable_rank_broke()->set_commit(commit);
    state.Heard(HostOf(member), event, now);
  }
  void Ready(int host) {
    state.HostGreeted(host, now);
    v1::Event event;
    event.mutable_launched();
    state.Heard(host, event, now);
  }
  int HostOf(uint64_t member) const { return state.facts().ranks[member - 1].host; }

  // Two hosts with two ranks each, in their first epoch.
  void Start() {
    state.Discovered({Slots("a", 2), Slots("b", 2)}, now);
    for (const int host : {0, 1}) Ready(host);
    for (uint64_t member = 1; member <= 4; ++member) Stand(member, 0);
    REQUIRE(Wants() == "reach0 reach1 prepare0 spawn@0 prepare1 spawn@1 propose1@0 propose1@1");
    Meet();
    REQUIRE(Wants() == "table@0 table@1 go1@0 go1@1");
  }

  static HostSlots Slots(const std::string& name, int slots) {
    HostSlots host;
    host.name = name;
    host.slots = slots;
    return host;
  }

  JobState state;
  std::vector<std::string> said;
  v1::EpochPropose proposal;
  double now = 1;
};

}  // namespace hvd::cli
