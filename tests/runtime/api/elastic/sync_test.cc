// SPDX-License-Identifier: Apache-2.0
// How the root's state comes to ranks that have none.
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/runtime/api/elastic/member.h"

namespace hvd::rt {
namespace {

// Not with a sanitizer, which takes all of it.
constexpr bool kCountsAddressSpace = HVD_TEST_SLOWNESS == 1;

// Returns the bytes of this process's address space.
uint64_t MappedBytes() {
  std::ifstream sizes("/proc/self/statm");
  uint64_t pages = 0;
  MUST(static_cast<bool>(sizes >> pages));
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Rank 0 and 1 have the state since epoch 1; rank 0 has a tensor since then that rank 2 cannot know
// of.
int Old() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  member.Set(1);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  std::vector<float> momentum(1000, 8), count = {static_cast<float>(hvd_rank())};
  member.Add("momentum", &momentum);
  member.Add("count", &count, HVD_STATE_FIRST);
  member.Set(2);
  member.MustCommit(2);
  member.Set(3);
  momentum.assign(1000, 9);
  MUST(hvd_reset(nullptr, nullptr) == HVD_OK);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(3);
  MUST(CurrentEpoch().commit == 2);
  member.MustCommit(4);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

int New() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MUST(CurrentEpoch().needs_state == 1);
  MUST(CurrentEpoch().root == 0);
  MemberState member;
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(3);
  int32_t count = 0;
  MUST(hvd_state_count(member.state, &count) == HVD_OK);
  MUST(count == 4);
  hvd_state_entry_t entry = HVD_STATE_ENTRY_INIT;
  MUST(hvd_state_entry(member.state, 1, &entry) == HVD_OK);
  MUST(std::string(entry.name) == "count");
  MUST(entry.held == 1);
  MUST(static_cast<const float*>(entry.tensor.data)[0] == 0);  // the root's
  MUST(hvd_state_entry(member.state, 2, &entry) == HVD_OK);
  MUST(std::string(entry.name) == "momentum");
  MUST(static_cast<const float*>(entry.tensor.data)[999] == 9);
  member.MustCommit(4);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("new members get the live state of the root, and hold what they have not added") {
  ElasticDaemon daemon;
  std::vector<uint64_t> members = daemon.BringAll({0, 1}, Old);
  daemon.Run({.epoch = 1, .hosts = {{0, members}}, .needy = {1}});
  members.push_back(daemon.Bring(0, New));
  for (const uint64_t member : {members[0], members[1]}) daemon.AwaitLeave(member);
  daemon.Run({.epoch = 2,
              .hosts = {{0, {members[0], members[1]}}, {1, {members[2]}}},
              .resume_commit = 2,
              .needy = {2},
              .survivors = 2});
  for (const uint64_t member : members) daemon.AwaitLeave(member);
  CHECK(daemon.NewestCommit(0) == 4);
  CHECK(daemon.NewestCommit(1) == 4);
  for (const uint64_t member : members) CHECK(daemon.AwaitEnd(member) == 0);
}

// Two that have the state since epoch 1, and wait in the sync of epoch 2 for one that never comes.
int LeftAlone() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustCommit(2);
  MUST(hvd_reset(nullptr, nullptr) == HVD_OK);
  MemberTell();
  MUST(hvd_state_sync(member.state) == HVD_ERR_ABORTED);
  MUST(std::string(hvd_last_error()).find("rank 2 has left the job") == 0);
  hvd_error_info_t info = HVD_ERROR_INFO_INIT;
  MUST(hvd_last_error_info(&info) == HVD_OK);
  MUST(info.rank == 2);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

int LeavesBeforeSync() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MUST(CurrentEpoch().needs_state == 1);
  MemberAwait();
  MUST(hvd_shutdown() == HVD_OK);
  return 3;
}

TEST_CASE("a new member that leaves before its sync is named, and not one that waits for it") {
  for (const int other : {0, 1}) {
    ElasticDaemon daemon;
    std::vector<uint64_t> members = daemon.BringAll({0, 1}, LeftAlone);
    daemon.Run({.epoch = 1, .hosts = {{0, members}}, .needy = {1}});
    members.push_back(daemon.Bring(other == 0 ? 2 : 0, LeavesBeforeSync));
    for (const uint64_t member : {members[0], members[1]}) daemon.AwaitLeave(member);
    ElasticPlan plan = {.epoch = 2,
                        .hosts = {{0, {members[0], members[1]}}},
                        .resume_commit = 2,
                        .needy = {2},
                        .survivors = 2};
    if (other == 0) plan.hosts[0].members.push_back(members[2]);
    if (other != 0) plan.hosts.push_back({other, {members[2]}});
    daemon.Run(plan);
    // In the epoch all are: one that hears of its end before would wait for the next.
    for (const uint64_t member : {members[0], members[1]}) daemon.AwaitTold(member);
    daemon.Open(members[2]);
    for (const uint64_t member : members) daemon.AwaitLeave(member);
    CHECK(daemon.AwaitEnd(members[0]) == 0);
    CHECK(daemon.AwaitEnd(members[1]) == 0);
    CHECK(daemon.AwaitEnd(members[2]) == 3);
  }
}

int Misfit() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  if (hvd_rank() == 2) member.bias.resize(4);
  if (hvd_rank() == 2) member.Add("bias", &member.bias);
  MUST(hvd_state_sync(member.state) == HVD_ERR_MISMATCH);
  const bool names_it =
      std::string(hvd_last_error()).find("'bias', float32 [4]") != std::string::npos;
  MUST(names_it == (hvd_rank() == 2));
  member.bias.resize(3);
  member.Add("bias", &member.bias);
  member.Set(static_cast<float>(hvd_rank() + 1));
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(1);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE(
    "a tensor that is not as the root's is an error on all ranks, and another sync may follow") {
  ElasticDaemon daemon;
  const std::vector<uint64_t> members = daemon.BringAll({0, 1, 2}, Misfit);
  daemon.Run({.epoch = 1, .hosts = {{0, members}}, .needy = {1, 2}});
  for (const uint64_t member : members) daemon.AwaitLeave(member);
  CHECK(daemon.NewestCommit(0) == 1);
  for (const uint64_t member : members) CHECK(daemon.AwaitEnd(member) == 0);
}

// The root has 256 MB of bytes, for which rank 1 has no address space left.
int Crowded() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MemberState member;
  member.Set(static_cast<float>(hvd_rank() + 1));
  const bool is_root = hvd_rank() == 0;
  {
    const std::string large(is_root ? 256 << 20 : 1, 'x');
    MUST(hvd_state_put(member.state, "large", large.data(), large.size()) == HVD_OK);
  }
  struct rlimit before {};
  MUST(getrlimit(RLIMIT_AS, &before) == 0);
  const struct rlimit small = {MappedBytes() + (128 << 20), before.rlim_max};
  if (!is_root) MUST(setrlimit(RLIMIT_AS, &small) == 0);
  MUST(hvd_state_sync(member.state) == (is_root ? HVD_ERR_MISMATCH : HVD_ERR_UNSUPPORTED));
  if (!is_root) {
    MUST(std::string(hvd_last_error()).find("no memory for 'large'") != std::string::npos);
    member.MustBe(2);
  }
  MUST(setrlimit(RLIMIT_AS, &before) == 0);
  MUST(hvd_state_put(member.state, "large", "x", 1) == HVD_OK);
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(1);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("a rank that has no memory for the root's bytes says so, and nobody waits for it") {
  if (!kCountsAddressSpace) return;
  ElasticDaemon daemon;
  const std::vector<uint64_t> members = daemon.BringAll({0, 1}, Crowded);
  daemon.Run({.epoch = 1, .hosts = {{0, members}}, .needy = {1}});
  daemon.AwaitGoodEnds(members);
}

}  // namespace
}  // namespace hvd::rt
