// SPDX-License-Identifier: Apache-2.0
// A job that is not elastic: each rank keeps its commits itself, and rank 0's state is everybody's.
#include <catch2/catch.hpp>

#include "tests/runtime/api/elastic/member.h"

namespace hvd::rt {
namespace {

int Member() {
  MUST(hvd_init(nullptr) == HVD_OK);
  MUST(hvd_is_elastic() == 0);
  MUST(hvd_slot() == hvd_rank());
  hvd_epoch_t epoch = CurrentEpoch();
  MUST(epoch.root == 0);
  MUST(epoch.sync == 1);
  MUST(epoch.needs_state == (hvd_rank() == 0 ? 0 : 1));
  MUST(epoch.survivors == 0);
  MemberState member;
  std::vector<float> own = {static_cast<float>(hvd_rank())};
  member.Add("own", &own, HVD_STATE_PRIVATE);
  member.Set(static_cast<float>(5 + hvd_rank()));
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(5);
  MUST(hvd_check_hosts() == HVD_OK);
  member.Set(6);
  member.MustCommit(2);
  member.Set(static_cast<float>(70 + hvd_rank()));
  own[0] = -1;
  MUST(hvd_reset(nullptr, &epoch) == HVD_OK);
  MUST(epoch.number == 2);
  MUST(epoch.commit == 2);
  MUST(epoch.survivors == 3);
  MUST(epoch.rolls_back == 0);
  MUST(hvd_state_restore(member.state, nullptr) == HVD_OK);
  member.MustBe(6);
  MUST(own[0] == static_cast<float>(hvd_rank()));
  member.Set(static_cast<float>(8 + hvd_rank()));
  MUST(hvd_state_sync(member.state) == HVD_OK);
  member.MustBe(8);
  member.MustCommit(4);
  MUST(hvd_shutdown() == HVD_OK);
  return 0;
}

TEST_CASE("a state in a job that is not elastic") {
  ElasticDaemon daemon(false);
  const std::vector<uint64_t> members = daemon.BringAll({0, 1, 2}, Member);
  ElasticPlan plan = {.epoch = 1, .hosts = {{0, {members[0], members[1]}}, {1, {members[2]}}}};
  daemon.Run(plan);
  for (const uint64_t member : members) daemon.AwaitLeave(member);
  plan.epoch = 2;
  daemon.Run(plan);
  daemon.AwaitGoodEnds(members);
}

int Ending() {
  MUST(hvd_init(nullptr) == HVD_ERR_ABORTED);
  MUST(std::string(hvd_last_error()) == "rank 1 has died");
  return 0;
}

TEST_CASE("without elastic, hvd_init tells of an epoch that ends before it has begun") {
  ElasticDaemon daemon(false);
  const uint64_t member = daemon.Bring(0, Ending);
  daemon.AwaitJoin(member);
  daemon.Begin({.epoch = 1, .hosts = {{0, {member}}}});
  daemon.Meet();
  daemon.Abort("rank 1 has died");
  CHECK(daemon.AwaitEnd(member) == 0);
}

}  // namespace
}  // namespace hvd::rt
