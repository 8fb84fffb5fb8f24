// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/rank_table.h"

#include <catch2/catch.hpp>
#include <csignal>

namespace hvd::daemon {
namespace {

RankDeath Death(int slot, int status) {
  RankDeath death;
  death.slot = slot;
  death.status = status;
  return death;
}

TEST_CASE("a rank's end is told once, when process, output and link have spoken") {
  RankTable table(2);
  table.Expect(1, 7);
  CHECK_FALSE(table.vacant(1));
  table.Started(1, 4711);
  table.Ended(Death(1, SIGSEGV | 0x80));
  CHECK(table.vacant(1));
  CHECK(!table.TakeEnd(1).has_value());
  table.Drained(1, {"last"});
  CHECK(!table.TakeEnd(1).has_value());
  LinkFacts facts;
  facts.joined = true;
  table.LinkSpoke(1, facts);
  const auto end = table.TakeEnd(1);
  REQUIRE(end.has_value());
  CHECK(end->slot == 1);
  CHECK(end->member == 7);
  CHECK(end->pid == 4711);
  CHECK(end->signal() == SIGSEGV);
  CHECK(end->core_dumped());
  CHECK(end->exit_code() == 0);
  CHECK(end->link.joined);
  CHECK(end->last_lines == std::vector<std::string>{"last"});
  CHECK(!table.TakeEnd(1).has_value());
  CHECK(table.member(0) == 0);
}

TEST_CASE("a death keeps what the other sides have said before it") {
  RankTable table(1);
  table.Expect(0, 3);
  table.Started(0, 12);
  table.Drained(0, {"its last words"});
  CHECK(table.Ended(Death(0, 0)).last_lines == std::vector<std::string>{"its last words"});
  CHECK(table.Ended(Death(0, 0)).pid == 12);
}

TEST_CASE("another worker's end is told after a reset, with nothing of the one before") {
  RankTable table(1);
  table.Expect(0, 1);
  RankDeath killed = Death(0, SIGKILL);
  killed.out_of_memory = true;
  table.Ended(killed);
  table.Drained(0, {"its last words"});
  table.LinkSpoke(0, LinkFacts());
  CHECK(!table.told(0));
  REQUIRE(table.TakeEnd(0).has_value());
  CHECK(table.told(0));
  table.Expect(0, 2);
  CHECK(!table.vacant(0));
  CHECK(!table.told(0));
  table.Ended(Death(0, 0));
  table.Drained(0, {});
  table.LinkSpoke(0, LinkFacts());
  const auto end = table.TakeEnd(0);
  REQUIRE(end.has_value());
  CHECK(end->member == 2);
  CHECK(end->signal() == 0);
  CHECK(!end->out_of_memory);
  CHECK(end->last_lines.empty());
}

}  // namespace
}  // namespace hvd::daemon
