// SPDX-License-Identifier: Apache-2.0
// What the job's state table makes of ranks that fail in hvd_init, or end while others are there.
#include <signal.h>

#include <catch2/catch.hpp>

#include "cli/report/verdict_text.h"
#include "tests/cli/job/driver_table.h"

namespace hvd::cli {
namespace {

TEST_CASE("a rank whose hvd_init fails after it has met others is the culprit, however it ends") {
  DriverTable table;
  table.Start();
  v1::Event event;
  event.mutable_rank_init_failed()->set_member(MemberOf(1));
  event.mutable_rank_init_failed()->set_message("no such network");
  event.mutable_rank_init_failed()->set_joined(true);
  table.state.Heard(1, event, table.now);
  CHECK(table.Wants() == "abort");
  SECTION("by itself") {
    table.Exit(1, {.code = 3});
    CHECK(table.Wants() == "abort stop");
    CHECK(table.Judged().exit_code == 3);
  }
  SECTION("by our stop, for it goes on") {
    table.state.Tick(table.now + 1);
    CHECK(table.Wants() == "abort stop");
    table.Exit(1, {.signal = SIGTERM});
    CHECK(table.Judged().exit_code == 1);
    const std::string text = RenderVerdict(table.state.facts(), table.Judged());
    CHECK(text.find("could not initialise hvd") != std::string::npos);
    CHECK(text.find("signal 15") == std::string::npos);
  }
  CHECK(table.Judged().index == 1);
  const std::string text = RenderVerdict(table.state.facts(), table.Judged());
  CHECK(text.find("its hvd_init failed: no such network") != std::string::npos);
}

TEST_CASE("two ranks that find the same fault at once say it both, whichever is heard first") {
  DriverTable table;
  table.Start();
  for (const uint32_t rank : {2, 0}) {
    v1::Event event;
    event.mutable_rank_init_failed()->set_member(MemberOf(rank));
    event.mutable_rank_init_failed()->set_message("HVD_X is 1 on rank 0 and 2 on rank 1");
    event.mutable_rank_init_failed()->set_joined(true);
    table.state.Heard(rank / 2, event, table.now);
    // Rank 0 has ended before, and is heard of later.
    table.Exit(static_cast<int>(rank), {.code = 1, .told_after_s = rank == 0 ? 0.5 : 0});
    CHECK(table.Wants() == (rank == 2 ? "abort abort stop" : ""));
  }
  const std::string text = RenderVerdict(table.state.facts(), table.Judged());
  CHECK(text.find("its hvd_init failed: HVD_X") != std::string::npos);
}

TEST_CASE("a rank whose hvd_init fails before it meets others may try again") {
  DriverTable table;
  table.Start();
  v1::Event event;
  event.mutable_rank_init_failed()->set_member(MemberOf(1));
  event.mutable_rank_init_failed()->set_message("no such network");
  table.state.Heard(1, event, table.now);
  CHECK(table.Wants().empty());
  const bool tries_again = GENERATE(false, true);
  if (tries_again) {
    v1::Event joined;
    joined.mutable_rank_joined()->set_member(MemberOf(1));
    joined.mutable_rank_joined()->set_epoch(1);
    table.state.Heard(1, joined, table.now);
  }
  table.Exit(1, {.code = 3});
  const std::string text = RenderVerdict(table.state.facts(), table.Judged());
  CHECK((text.find("its hvd_init failed: no such network") == std::string::npos) == tries_again);
}

TEST_CASE("a rank that ends well before init is early, even if told after those it failed") {
  DriverTable table;
  table.Start();
  table.now = 2;
  table.Exit(2, {1, 0, true, false, false});
  CHECK(table.Wants() == "abort stop");
  table.now = 2.5;
  table.Exit(0, {0, 0, false, false, false, 1.5});
  CHECK(table.Judged().index == 0);
  CHECK(table.Judged().exit_code == 1);
}

// Its host told of the death at once. The host's word of the end has been on its way for long.
TEST_CASE("a rank that ends well before init is early, though its end was held up on the way") {
  DriverTable table;
  table.Start();
  v1::MemberDied died;
  died.set_member(MemberOf(0));
  table.now = 1;
  table.Died(died);
  table.now = 2;
  table.Exit(2, {1, 0, true, false, false});
  table.now = 2.5;
  table.Exit(0, {0, 0, false, false, false, 0.01});
  CHECK(table.Judged().index == 0);
  CHECK(table.Judged().exit_code == 1);
}

void Join(DriverTable* table, int rank, uint64_t epoch) {
  v1::Event event;
  event.mutable_rank_joined()->set_member(MemberOf(rank));
  event.mutable_rank_joined()->set_epoch(epoch);
  table->state.Heard(rank / 2, event, 1);
}

TEST_CASE("who waits in a later init for a rank that has shut down and exited is told") {
  DriverTable table;
  table.Start();
  SECTION("it exits while others wait") {
    Join(&table, 2, 2);
    CHECK(table.Wants().empty());
    table.Exit(0);
  }
  SECTION("others come later") {
    table.Exit(0);
    CHECK(table.Wants().empty());
    Join(&table, 2, 2);
  }
  CHECK(table.Wants() == "abort");
  table.Exit(1, {});
  table.Exit(2, {});
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 0);
}

TEST_CASE("a program that knows nothing of hvd may end rank by rank") {
  DriverTable table;
  table.Start();
  for (const int rank : {2, 0, 1}) table.Exit(rank, {.joined = false, .left = false});
  CHECK(table.state.finished());
  CHECK(table.Judged().exit_code == 0);
}

}  // namespace
}  // namespace hvd::cli
