// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/end_words.h"

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <csignal>

namespace hvd::daemon {
namespace {

RankDeath Death(int status) {
  RankDeath death;
  death.member = 7;
  death.pid = 4711;
  death.status = status;
  death.at = TimePoint(std::chrono::seconds(5));
  death.link.epoch = 3;
  death.link.aborted = {"rank 1 died", 1, -1};
  death.link.cause = "rank 0 on here was killed";
  return death;
}

TEST_CASE("a death is told with what ended it and its epoch") {
  const v1::MemberDied died = DiedEvent(Death(SIGSEGV | 0x80)).member_died();
  CHECK(died.member() == 7);
  CHECK(died.signal() == SIGSEGV);
  CHECK(died.core_dumped());
  CHECK(died.exit_code() == 0);
  CHECK(died.epoch() == 3);
  CHECK(died.aborted() == "rank 1 died");
  CHECK(died.cause() == "rank 0 on here was killed");
  CHECK_FALSE(died.after_abort());
}

TEST_CASE("one that went with its shim is another's doing") {
  RankDeath death = Death(SIGKILL);
  death.with_shim = true;
  CHECK(DiedEvent(death).member_died().after_abort());
  CHECK(death.how() == "ended with its shim");
  CHECK(ExitedEvent(death, true, death.at).rank_exited().after_abort());
}

TEST_CASE("a whole end has the last lines, the rank to blame and the time that it took") {
  RankDeath death = Death(W_EXITCODE(3, 0));
  death.last_lines = {"one", "two"};
  const TimePoint now = death.at + std::chrono::milliseconds(2);
  const v1::RankExited exited = ExitedEvent(death, false, now).rank_exited();
  CHECK(exited.pid() == 4711);
  CHECK(exited.exit_code() == 3);
  CHECK(exited.signal() == 0);
  CHECK(exited.last_lines_size() == 2);
  CHECK(exited.abort_rank() == 1);
  CHECK_FALSE(exited.has_unreached());
  CHECK(exited.told_after_us() == 2000);
}

TEST_CASE("only who ran and ended with 0 ended well") {
  CHECK(Death(0).well());
  CHECK_FALSE(Death(W_EXITCODE(1, 0)).well());
  CHECK_FALSE(Death(SIGTERM).well());
  RankDeath never = Death(0);
  never.never_started = true;
  CHECK_FALSE(never.well());
  CHECK(never.how() == "never started");
}

TEST_CASE("a member without a place has died and has wholly ended") {
  const std::array<v1::Event, 2> events = RefusedEvents(9, "no free place");
  CHECK(events[0].member_died().member() == 9);
  CHECK(events[0].member_died().exit_code() == 125);
  CHECK(events[1].rank_exited().member() == 9);
  CHECK(events[1].rank_exited().exec_error() == "no free place");
}

}  // namespace
}  // namespace hvd::daemon
