// SPDX-License-Identifier: Apache-2.0
// Commits in an elastic job: what the hosts' files keep when members die, and when members are to
// change.
#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/runtime/api/elastic/member.h"
#include "tests/support/eventually.h"

namespace hvd::rt {
namespace {

// Commits 1 (of the sync) to 3 on two ranks; then rank 0 begins a fourth, for which rank 1 never
// comes.
int Survivor() {
  MUST(hvd_slot() == -1);
  MUST(hvd_is_elastic() == 1);
  MUST(hvd_init(nullptr) == HVD_OK);
  MUST(hvd_slot() == 0);
  MemberState member;
  std::vector<float> own = {1};
  member.Add("own", &own, HVD_STATE_PRIVATE);
  member.Set(1);
  MUST(CurrentEpoch().is_new == 1);
  MUST(CurrentEpoch().sync == 1);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  for (int number = 2; number <= 3; ++number) {
    member.Set(static_cast<float>(number));
    own[0] = static_cast<float>(number);
    member.MustCommit(static_cast<uint64_t>(number));
  }
  member.Set(4);
  own[0] = 4;
  MUST(hvd_state_commit(member.state, nullptr) == HVD_ERR_ABORTED);
  hvd_epoch_t epoch = HVD_EPOCH_INIT;
  MUST(hvd_reset(nullptr, &epoch) == HVD_OK);
  MUST(epoch.number == 3);
  MUST(epoch.commit == 3);
  MUST(epoch.rolls_back == 1);
  MUST(epoch.survivors == 1);
  MUST(epoch.is_new == 0);
  MUST(epoch.needs_state == 0);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(3);
  MUST(own[0] == 3);
  MUST(SumOf(1, "after") == HVD_OK);
  member.Set(5);
  member.MustCommit(4);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

int Dying() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MUST(hvd_slot() == 1);
  MemberState member;
  std::vector<float> own = {10};
  member.Add("own", &own, HVD_STATE_PRIVATE);
  MUST(CurrentEpoch().needs_state == 1);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(1);
  MUST(own[0] == 10);
  for (int number = 2; number <= 3; ++number) {
    member.Set(static_cast<float>(number));
    own[0] = static_cast<float>(10 * number);
    member.MustCommit(static_cast<uint64_t>(number));
  }
  MemberTell();
  MemberAwait();
  return 1;
}

// Has the share of the one that has died, and its private tensor; the host's files have the rest.
int Replacement() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MUST(hvd_slot() == 1);
  MemberState member;
  std::vector<float> own = {0};
  member.Add("own", &own, HVD_STATE_PRIVATE);
  MUST(CurrentEpoch().is_new == 1);
  MUST(CurrentEpoch().needs_state == 0);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(3);
  MUST(own[0] == 30);
  MUST(SumOf(1, "after") == HVD_OK);
  member.Set(5);
  member.MustCommit(4);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("a rank dies while a commit is written: all go on from the one before") {
  ElasticDaemon daemon;
  const uint64_t first = daemon.Bring(0, Survivor);
  const uint64_t second = daemon.Bring(1, Dying);
  daemon.Run({.epoch = 1, .hosts = {{0, {first, second}}}, .needy = {1}});
  daemon.AwaitTold(second);
  // The first has written its part of number 4 once its cell says so.
  const StateHead* const head = daemon.state(0, 4);
  REQUIRE(head != nullptr);
  REQUIRE(Eventually(60, [&] { return head->cells[0].number.load() == 4; }));
  CHECK(CompleteState(*head).number == 0);
  daemon.Kill(second);
  daemon.Abort("rank 1 has died");
  daemon.AwaitLeave(first);
  REQUIRE(daemon.NewestCommit(0) == 3);
  daemon.VoidBeyond(0, 3);
  const uint64_t third = daemon.Bring(1, Replacement);
  daemon.Run({.epoch = 3,
              .hosts = {{0, {first, third}}},
              .resume_commit = 3,
              .rolls_back = true,
              .survivors = 1});
  daemon.AwaitLeave(first);
  daemon.AwaitLeave(third);
  CHECK(daemon.NewestCommit(0) == 4);
  CHECK(daemon.AwaitEnd(first) == 0);
  CHECK(daemon.AwaitEnd(third) == 0);
}

// Two of the three members survive.
int Stepping() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  member.Set(1);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.Set(2);
  member.MustCommit(2);
  uint64_t number = 0;
  MUST(hvd_state_keep(member.state, &number) == HVD_OK);
  MUST(number == 3);
  member.Set(4);
  member.MustCommit(4);
  MemberTell();
  MemberAwait();
  MUST(hvd_reset(nullptr, nullptr) == HVD_OK);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(2);
  MemberTell();
  MemberAwait();
  member.MustCommit(5);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

int SteppingLater() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(2);
  MemberTell();
  MemberAwait();
  member.MustCommit(5);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("commits say how many of the program's own led to them, and at which place they are") {
  ElasticDaemon daemon;
  std::vector<uint64_t> members = daemon.BringAll({0, 1}, Stepping);
  daemon.Run({.epoch = 1, .hosts = {{0, members}}, .needy = {1}});
  for (const uint64_t member : members) daemon.AwaitTold(member);
  const auto word = [&daemon](int host, uint64_t number) {
    const StateWord found = CompleteState(*daemon.state(host, number));
    CHECK(found.number == number);
    return found;
  };
  CHECK(word(0, 3).steps == 1);  // a sync's, one of the program's, and one that is kept
  CHECK(word(0, 4).steps == 2);
  CHECK(word(0, 4).place != 0);
  const uint64_t place = word(0, 3).place;
  CHECK(word(0, 4).place != place);
  members.push_back(daemon.Bring(0, SteppingLater));
  daemon.Abort("it is over");
  for (const uint64_t member : {members[0], members[1]}) {
    daemon.Open(member);
    daemon.AwaitLeave(member);
  }
  daemon.VoidBeyond(0, 3);
  daemon.Run({.epoch = 2,
              .hosts = {{0, {members[0], members[1]}}, {1, {members[2]}}},
              .resume_commit = 3,
              .needy = {2},
              .rolls_back = true,
              .survivors = 2});
  for (const uint64_t member : members) daemon.AwaitTold(member);
  for (const int host : {0, 1}) {
    CHECK(word(host, 4).steps == 1);
    CHECK(word(host, 4).place == place);
  }
  for (const uint64_t member : members) daemon.Open(member);
  for (const uint64_t member : members) daemon.AwaitLeave(member);
  for (const int host : {0, 1}) CHECK(word(host, 5).steps == 2);
  for (const uint64_t member : members) CHECK(daemon.AwaitEnd(member) == 0);
}

int Changing() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  member.Set(1);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustCommit(2);
  MUST(hvd_check_hosts() == HVD_OK);
  MemberTell();
  MemberAwait();
  member.Set(3);
  uint64_t number = 0;
  MUST(hvd_state_commit(member.state, &number) == HVD_ERR_HOSTS_UPDATED);
  MUST(number == 3);
  MUST(hvd_check_hosts() == HVD_ERR_HOSTS_UPDATED);
  member.weights[7] = 70;  // since the commit: a planned change does not go back
  MUST(hvd_reset(nullptr, nullptr) == HVD_OK);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  MUST(member.weights[7] == 70);
  member.MustCommit(4);
  MUST(hvd_check_hosts() == HVD_OK);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("a change of members is told to all ranks at the same commit") {
  ElasticDaemon daemon;
  const std::vector<uint64_t> members = daemon.BringAll({0, 1, 2}, Changing);
  const ElasticPlan first = {
      .epoch = 1, .hosts = {{0, {members[0], members[1]}}, {1, {members[2]}}}, .needy = {1, 2}};
  daemon.Run(first);
  for (const uint64_t member : members) daemon.AwaitTold(member);
  daemon.SetChange(1);  // one host has heard of it, the other not yet
  for (const uint64_t member : members) daemon.Open(member);
  for (const uint64_t member : members) daemon.AwaitLeave(member);
  CHECK(daemon.NewestCommit(0) == 3);
  CHECK(daemon.NewestCommit(1) == 3);
  ElasticPlan second = first;
  second.epoch = 2;
  second.resume_commit = 3;
  second.needy = {};
  second.survivors = 3;
  daemon.Run(second);
  daemon.AwaitGoodEnds(members);
}

int Differing() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  member.Set(1);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  std::vector<float> more(static_cast<size_t>(2 + hvd_rank()));
  member.Add("more", &more);
  MUST(hvd_state_commit(member.state, nullptr) == HVD_ERR_MISMATCH);
  MUST(std::string(hvd_last_error()).find("replicated tensors") != std::string::npos);
  const hvd_status_t status =
      hvd_rank() == 0 ? hvd_check_hosts() : hvd_state_commit(member.state, nullptr);
  MUST(status == HVD_ERR_MISMATCH);
  MUST(std::string(hvd_last_error()).find("hvd_check_hosts") != std::string::npos);
  MUST(hvd_state_remove(member.state, "more") == HVD_OK);
  MemberTell();
  MemberAwait();
  member.MustCommit(2);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("ranks whose states differ are told so, and the host keeps nothing of it") {
  ElasticDaemon daemon;
  const std::vector<uint64_t> members = daemon.BringAll({0, 1}, Differing);
  daemon.Run({.epoch = 1, .hosts = {{0, members}}, .needy = {1}});
  for (const uint64_t member : members) daemon.AwaitTold(member);
  CHECK(daemon.NewestCommit(0) == 1);
  for (const uint64_t member : members) daemon.Open(member);
  for (const uint64_t member : members) daemon.AwaitLeave(member);
  CHECK(daemon.NewestCommit(0) == 2);
  for (const uint64_t member : members) CHECK(daemon.AwaitEnd(member) == 0);
}

// Rank 0 destroys its state while a commit waits for rank 1.
int Destroying() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  MUST(hvd_state_sync(member.state) == HVD_OK);
  if (hvd_rank() == 1) {
    MemberAwait();
    member.MustCommit(2);
    MUST(hvd_shutdown() == HVD_OK);
    return 0;
  }
  std::thread commits([&] { member.MustCommit(2); });
  MemberTell();
  MemberAwait();
  std::atomic<bool> is_destroyed{false};
  std::thread destroys([&] {
    hvd_state_destroy(member.state);
    is_destroyed = true;
  });
  usleep(100000);  // orders nothing: time for a destroy that does not wait to be caught
  MUST(!is_destroyed);
  MemberTell();
  commits.join();
  destroys.join();
  hvd_state_t* another = nullptr;
  MUST(hvd_state_create(&another) == HVD_OK);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("a state is destroyed when the commit under way has ended") {
  ElasticDaemon daemon;
  const std::vector<uint64_t> members = daemon.BringAll({0, 1}, Destroying);
  daemon.Run({.epoch = 1, .hosts = {{0, members}}, .needy = {1}});
  daemon.AwaitTold(members[0]);
  const RankActivity& activity = daemon.page(0)->activity[0];
  REQUIRE(Eventually(60, [&] { return activity.callers.load() >= 1; }));
  daemon.Open(members[0]);
  daemon.AwaitTold(members[0]);
  daemon.Open(members[1]);
  daemon.AwaitGoodEnds(members);
}

// Rank 0 may not make files of more than 4 MB, and is to write 8.
int Poor() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  member.Set(1);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  std::vector<float> large(2000000, 1);
  member.Add("large", &large, HVD_STATE_FIRST);
  struct rlimit before {};
  MUST(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const struct rlimit small = {4 << 20, before.rlim_max};
  MUST(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const bool is_first = hvd_rank() == 0;
  MUST(hvd_state_commit(member.state, nullptr) ==
       (is_first ? HVD_ERR_UNSUPPORTED : HVD_ERR_MISMATCH));
  const std::string why = is_first ? "ulimit -f" : "its own error";
  MUST(std::string(hvd_last_error()).find(why) != std::string::npos);
  MUST(setrlimit(RLIMIT_FSIZE, &before) == 0);
  member.MustCommit(2);
  large[1999999] = 2;
  MUST(hvd_state_restore(member.state, nullptr) == HVD_OK);
  MUST(large[1999999] == 1);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("a rank that has no memory for its part says why, and the others do not wait") {
  ElasticDaemon daemon;
  const std::vector<uint64_t> members = daemon.BringAll({0, 1}, Poor);
  daemon.Run({.epoch = 1, .hosts = {{0, members}}, .needy = {1}});
  for (const uint64_t member : members) daemon.AwaitLeave(member);
  CHECK(daemon.NewestCommit(0) == 2);
  for (const uint64_t member : members) CHECK(daemon.AwaitEnd(member) == 0);
}

}  // namespace
}  // namespace hvd::rt
