// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/rank_table.h"

#include <catch2/catch.hpp>
#include <csignal>

namespace hvd {
namespace {

TEST_CASE("a rank's end is told once, when process, output and link have spoken") {
  RankTable table(2);
  table.Started(1, 4711);
  table.Exited(1, SIGSEGV | 0x80, false);
  CHECK(table.ended(1));
  CHECK(!table.TakeEnd(1).has_value());
  table.Drained(1, {"last"});
  CHECK(!table.TakeEnd(1).has_value());
  LinkFacts facts;
  facts.joined = true;
  table.LinkSpoke(1, facts);
  const auto end = table.TakeEnd(1);
  REQUIRE(end.has_value());
  CHECK(end->slot == 1);
  CHECK(end->pid == 4711);
  CHECK(end->signal == SIGSEGV);
  CHECK(end->core_dumped);
  CHECK(end->exit_code == 0);
  CHECK(end->link.joined);
  CHECK(end->last_lines == std::vector<std::string>{"last"});
  CHECK(!table.TakeEnd(1).has_value());
  CHECK(!table.ended(0));
}

TEST_CASE("another worker's end is told after a reset, with nothing of the one before") {
  RankTable table(1);
  table.Exited(0, SIGKILL, true);
  table.Drained(0, {"its last words"});
  table.LinkSpoke(0, LinkFacts());
  CHECK(!table.told(0));
  REQUIRE(table.TakeEnd(0).has_value());
  CHECK(table.told(0));
  table.Reset(0);
  CHECK(!table.ended(0));
  CHECK(!table.told(0));
  table.Exited(0, 0, false);
  table.Drained(0, {});
  table.LinkSpoke(0, LinkFacts());
  const auto end = table.TakeEnd(0);
  REQUIRE(end.has_value());
  CHECK(end->signal == 0);
  CHECK(!end->out_of_memory);
  CHECK(end->last_lines.empty());
}

}  // namespace
}  // namespace hvd
