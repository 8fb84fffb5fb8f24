// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/fake_elastic.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

namespace hvd::cli {

void FakeElastic::Take(const v1::Command& command) {
  if (command.has_prepare_host()) prepare_ = command.prepare_host();
  if (command.has_spawn_slots()) Spawn(command.spawn_slots());
  if (command.has_epoch_propose()) {
    epoch_ = command.epoch_propose();
    Join();
  }
  if (command.has_epoch_table()) {
    v1::Event ready;
    ready.mutable_host_ready()->set_epoch(command.epoch_table().epoch());
    speech_.say(ready);
  }
  if (command.has_epoch_go()) Start(command.epoch_go().epoch());
  if (command.has_epoch_abort()) Leave(command.epoch_abort().epoch());
  if (command.has_epoch_change()) Leave(command.epoch_change().epoch());
  if (command.has_retire_slot()) {
    for (const auto& [member, slot] : std::map<uint64_t, uint32_t>(living_)) {
      if (slot == command.retire_slot().slot()) Exit(member, 0, false);
    }
  }
  if (command.has_stop()) Stop();
}

void FakeElastic::Spawn(const v1::SpawnSlots& spawn) {
  if (!launched_) {
    v1::Event event;
    event.mutable_launched()->set_pid(getpid());
    speech_.say(event);
    launched_ = true;
  }
  for (const v1::Seat& seat : spawn.seats()) {
    living_[seat.member()] = seat.slot();
    v1::Event started;
    started.mutable_rank_started()->set_member(seat.member());
    started.mutable_rank_started()->set_pid(1000 + seat.member());
    speech_.say(started);
    Stand(seat.member(), 0);
  }
}

void FakeElastic::Stand(uint64_t member, uint64_t after) {
  v1::Event event;
  event.mutable_member_stands()->set_member(member);
  event.mutable_member_stands()->set_after_epoch(after);
  speech_.say(event);
}

void FakeElastic::Join() {
  v1::Event event;
  event.mutable_host_addresses()->set_epoch(epoch_.epoch());
  uint32_t rank = 0;
  for (const v1::EpochHost& host : epoch_.hosts()) {
    for (const v1::Seat& seat : host.members()) {
      const bool mine = host.host() == prepare_.host();
      if (mine) in_epoch_.insert(seat.member());
      if (mine) event.mutable_host_addresses()->add_addresses()->set_rank(rank);
      ++rank;
    }
  }
  speech_.say(event);
}

void FakeElastic::Start(uint64_t epoch) {
  const auto& argv = prepare_.program().argv();
  int size = 0;
  for (const v1::EpochHost& host : epoch_.hosts()) size += host.members_size();
  if (epoch == 1 && prepare_.name() == argv[1]) {
    if (argv[2] == "host") kill(getpid(), SIGKILL);
    const uint64_t victim = *in_epoch_.begin();
    in_epoch_.erase(victim);
    Exit(victim, SIGKILL, true);
    return Leave(epoch);
  }
  for (const uint64_t member : in_epoch_) {
    v1::OutputChunk words;
    words.set_member(member);
    words.set_data("in epoch " + std::to_string(epoch) + "\n");
    speech_.print(words);
  }
  if (epoch == 1 || size != atoi(argv[3].c_str())) return;
  for (const auto& [member, slot] : std::map<uint64_t, uint32_t>(living_)) Exit(member, 0, true);
}

void FakeElastic::Leave(uint64_t epoch) {
  if (epoch != epoch_.epoch() || epoch == 0) return;
  for (const uint64_t member : in_epoch_) Stand(member, epoch);
  in_epoch_.clear();
  v1::Event quiet;
  quiet.mutable_host_quiet()->set_epoch(epoch);
  quiet.mutable_host_quiet()->set_commit(5);
  speech_.say(quiet);
}

void FakeElastic::Exit(uint64_t member, int signal, bool told_before) {
  if (told_before) {
    v1::Event died;
    died.mutable_member_died()->set_member(member);
    died.mutable_member_died()->set_signal(signal);
    died.mutable_member_died()->set_epoch(epoch_.epoch());
    died.mutable_member_died()->set_left(signal == 0);
    speech_.say(died);
  }
  living_.erase(member);
  for (const bool is_stderr : {false, true}) {
    v1::OutputChunk end;
    end.set_member(member);
    end.set_is_stderr(is_stderr);
    end.set_end(true);
    speech_.print(end);
  }
  v1::Event event;
  event.mutable_rank_exited()->set_member(member);
  event.mutable_rank_exited()->set_signal(signal);
  event.mutable_rank_exited()->set_joined(true);
  event.mutable_rank_exited()->set_left(signal == 0);
  speech_.say(event);
}

void FakeElastic::Stop() {
  for (const auto& [member, slot] : std::map<uint64_t, uint32_t>(living_)) {
    Exit(member, SIGTERM, false);
  }
  v1::Event event;
  event.mutable_stopped();
  speech_.say(event);
}

}  // namespace hvd::cli
