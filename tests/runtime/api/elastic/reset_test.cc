// SPDX-License-Identifier: Apache-2.0
// hvd_reset: what it ends, what it leaves alone, and which epochs it waits out.
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "tests/runtime/api/elastic/member.h"
#include "tests/support/eventually.h"

namespace hvd::rt {
namespace {

int Joining() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MUST(CurrentEpoch().number == 9);
  MUST(SumOf(1, "x") == HVD_OK);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("hvd_init goes on to the next epoch when one ends before it has begun") {
  ElasticDaemon daemon;
  const std::vector<uint64_t> members = daemon.BringAll({0, 1}, Joining);
  const auto await = [&](void (ElasticDaemon::*word)(uint64_t)) {
    for (const uint64_t member : members) (daemon.*word)(member);
  };
  await(&ElasticDaemon::AwaitJoin);
  ElasticPlan plan = {.epoch = 5, .hosts = {{0, members}}, .needy = {1}};
  daemon.Begin(plan);
  daemon.Meet();
  daemon.Abort("host2 has died");  // by the page alone
  for (const uint64_t member : members) {
    daemon.AwaitReady(member);
    daemon.AwaitLeave(member);
  }
  await(&ElasticDaemon::AwaitJoin);
  plan.epoch = 7;
  daemon.Begin(plan);
  for (const uint64_t member : members) daemon.Refuse(member, "host3 has died", 7, false);
  for (const uint64_t member : members) {
    daemon.AwaitAddress(member);
    daemon.AwaitLeave(member);
  }
  plan.epoch = 9;
  daemon.Run(plan);
  await(&ElasticDaemon::AwaitLeave);
  for (const uint64_t member : members) CHECK(daemon.AwaitEnd(member) == 0);
}

// The first has got its Go and waits for the second, which has not and never will.
TEST_CASE("hvd_init goes on to the next epoch when one ends while its ranks meet") {
  ElasticDaemon daemon;
  const std::vector<uint64_t> members = daemon.BringAll({0, 0}, Joining);
  for (const uint64_t member : members) daemon.AwaitJoin(member);
  ElasticPlan plan = {.epoch = 5, .hosts = {{0, {members[0]}}, {1, {members[1]}}}, .needy = {1}};
  daemon.Begin(plan);
  daemon.Meet();
  for (const uint64_t member : members) daemon.AwaitReady(member);
  daemon.GoTo(members[0]);
  daemon.Abort("host2 has died");
  for (const uint64_t member : members) daemon.AwaitLeave(member);
  plan.epoch = 9;
  daemon.Run(plan);
  daemon.AwaitGoodEnds(members);
}

int Removed() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  member.MustCommit(1);
  MUST(hvd_reset(nullptr, nullptr) == HVD_ERR_REMOVED);
  MUST(std::string(hvd_last_error()) == "host3 is not in the list of hosts any more");
  MUST(hvd_is_initialized() == 0);
  MUST(hvd_slot() == 4);
  MUST(hvd_state_restore(member.state, nullptr) == HVD_ERR_NOT_INITIALIZED);
  MUST(hvd_reset(nullptr, nullptr) == HVD_ERR_LAUNCH);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("a member that is removed is told so; a job that is over refuses for good") {
  ElasticDaemon daemon;
  const uint64_t member = daemon.Bring(4, Removed);
  daemon.Run({.epoch = 1, .hosts = {{0, {member}}}});
  daemon.AwaitLeave(member);
  daemon.AwaitJoin(member);
  daemon.Refuse(member, "host3 is not in the list of hosts any more", 0, true);
  daemon.AwaitJoin(member);
  daemon.Refuse(member, "the job is over", 0, false);
  daemon.AwaitInitFailed(member);
  CHECK(daemon.AwaitEnd(member) == 0);
}

// The first resets while its other threads wait for the second, which does not come.
int Impatient() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  member.Set(1);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  hvd_queue_t* queue = nullptr;
  MUST(hvd_queue_create(&queue) == HVD_OK);
  std::vector<float> values(100000, 1);
  const Floats floats(&values);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = "pending";
  options.queue = queue;
  hvd_handle_t handle = 0;
  MUST(hvd_allreduce_async(&floats.tensor, &floats.tensor, &options, &handle) == HVD_OK);
  hvd_bucket_t* bucket = nullptr;
  const int64_t counts[] = {1000};
  MUST(hvd_bucket_create(counts, 1, nullptr, &bucket) == HVD_OK);
  MUST(hvd_bucket_ready(bucket, 0) == HVD_OK);
  void* memory = nullptr;
  MUST(hvd_alloc(4096, &memory) == HVD_OK);
  static_cast<char*>(memory)[5] = 'x';
  const int32_t everyone[] = {0, 1};
  int32_t set = 0;
  MUST(hvd_add_process_set_members(everyone, 2, "mine", &set) == HVD_OK);
  hvd_status_t barrier = HVD_OK, commit = HVD_OK;
  std::thread waits([&] { barrier = hvd_barrier(nullptr); });
  std::thread commits([&] { commit = hvd_state_commit(member.state, nullptr); });
  MemberTell();
  MemberAwait();
  hvd_epoch_t epoch = HVD_EPOCH_INIT;
  MUST(hvd_reset(nullptr, &epoch) == HVD_OK);
  waits.join();
  commits.join();
  MUST(epoch.number == 2);
  // Threads that come too late find no epoch, or the next one: then they would hang, and do not.
  MUST(barrier == HVD_ERR_ABORTED);
  MUST(commit == HVD_ERR_ABORTED);
  MUST(hvd_wait(handle) == HVD_ERR_ABORTED);
  hvd_completion_t ended = {};
  int32_t told = 0;
  MUST(hvd_queue_next(queue, &ended, 1, &told) == HVD_OK);
  MUST(told == 1);
  MUST(ended.status == HVD_ERR_ABORTED);
  MUST(hvd_bucket_wait(bucket) == HVD_ERR_ABORTED);
  MUST(static_cast<char*>(memory)[5] == 'x');
  options = HVD_OPTIONS_INIT;
  options.process_set = set;
  MUST(hvd_barrier(&options) == HVD_ERR_INVALID);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(1);
  MUST(hvd_bucket_ready(bucket, 0) == HVD_OK);
  MUST(hvd_bucket_wait(bucket) == HVD_OK);
  hvd_bucket_destroy(bucket);
  MUST(hvd_free(memory) == HVD_OK);
  MUST(hvd_queue_destroy(queue) == HVD_OK);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

int Waiting() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  MUST(hvd_state_sync(member.state) == HVD_OK);
  const int32_t everyone[] = {0, 1};
  int32_t set = 0;
  MUST(hvd_add_process_set_members(everyone, 2, "mine", &set) == HVD_OK);
  MUST(SumOf(1, "mine alone") == HVD_ERR_ABORTED);
  hvd_error_info_t info = HVD_ERROR_INFO_INIT;
  MUST(hvd_last_error_info(&info) == HVD_OK);
  MUST(info.rank == 0);
  MUST(hvd_reset(nullptr, nullptr) == HVD_OK);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  hvd_bucket_t* bucket = nullptr;
  const int64_t counts[] = {1000};
  MUST(hvd_bucket_create(counts, 1, nullptr, &bucket) == HVD_OK);
  MUST(hvd_bucket_ready(bucket, 0) == HVD_OK);
  MUST(hvd_bucket_wait(bucket) == HVD_OK);
  hvd_bucket_destroy(bucket);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

// The names of the memory files that a process has mapped.
std::string Mapped(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  std::string all;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:hvd-test") != std::string::npos) all += line + "\n";
  }
  return all;
}

TEST_CASE("a reset ends what is pending, leaves nothing mapped, and keeps what is the process's") {
  ElasticDaemon daemon;
  const uint64_t first = daemon.Bring(0, Impatient);
  const uint64_t second = daemon.Bring(1, Waiting);
  daemon.Run({.epoch = 1, .hosts = {{0, {first, second}}}, .needy = {1}});
  daemon.AwaitTold(first);
  CHECK(!Mapped(daemon.pid(first)).empty());
  // Its threads are inside their calls: two, and the pending allreduce, chunk and layout.
  const RankActivity& activity = daemon.page(0)->activity[0];
  REQUIRE(Eventually(60, [&] { return activity.callers.load() == 2; }));
  daemon.Open(first);
  for (const uint64_t member : {first, second}) {
    daemon.AwaitLeave(member);
    CHECK(Mapped(daemon.pid(member)) == "");
  }
  daemon.Run({.epoch = 2,
              .hosts = {{0, {first, second}}},
              .resume_commit = 1,
              .rolls_back = true,
              .survivors = 2});
  daemon.AwaitGoodEnds({first, second});
}

}  // namespace
}  // namespace hvd::rt
