// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch/stall_watch.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

const TimePoint kStart = TimePoint() + std::chrono::hours(1);
TimePoint At(double seconds) {
  return kStart +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

RankPending Answer(int rank, std::vector<std::pair<uint64_t, std::string>> tensors) {
  RankPending answer;
  answer.local_rank = rank;
  for (const auto& [sequence, name] : tensors) {
    answer.list.tensors.push_back({sequence, name, "allreduce"});
  }
  return answer;
}

TEST_CASE("what stays in the answers waits, what comes anew under the same name does not") {
  StallWatch watch({1, 0});
  watch.Take({{Answer(0, {{1, "a"}, {2, "b"}})}, {}}, At(0));
  const auto waiting =
      watch.Take({{Answer(0, {{1, "a"}, {7, "b"}}), Answer(2, {{3, "a"}})}, {}}, At(1.5));
  REQUIRE(waiting.size() == 2);
  CHECK(waiting[0].name == "a");
  CHECK(waiting[0].waited_s == Approx(1.5));
  CHECK(waiting[0].local_ranks == std::vector<int>{0, 2});
  CHECK(waiting[1].waited_s == 0);
}

TEST_CASE("what a rank that is late for an answer said before goes on waiting") {
  StallWatch watch({1, 0});
  RankPending in_set = Answer(0, {{1, "a"}});
  in_set.list.set = 3;
  watch.Take({{Answer(0, {{1, "a"}}), in_set, Answer(1, {{1, "a"}})}, {}}, At(0));
  // Rank 0 has answered for one set of its two, rank 1 has nothing pending.
  CHECK(watch.Take({{in_set}, {0}}, At(1)).size() == 1);
  const auto waiting =
      watch.Take({{Answer(0, {{1, "a"}}), in_set, Answer(1, {{1, "a"}})}, {}}, At(2));
  REQUIRE(waiting.size() == 2);
  CHECK(waiting[0].waited_s == Approx(2));
  CHECK(waiting[1].waited_s == Approx(2));
  CHECK(waiting[0].local_ranks.size() + waiting[1].local_ranks.size() == 3);
  watch.Take({{}, {0, 1}}, At(3));
  CHECK(watch.Take({{Answer(1, {{1, "a"}})}, {0}}, At(4))[0].waited_s == Approx(2));
}

TEST_CASE("a stall is told at the limit, once each period, and again when it aborts") {
  StallWatch watch({10, 25});
  const auto due = [&](double now) {
    return watch.Due({watch.Take({{Answer(0, {{1, "a"}})}, {}}, At(now))[0].waited_s}, At(now));
  };
  CHECK_FALSE(due(0));
  CHECK_FALSE(due(9));
  CHECK(due(10));
  CHECK_FALSE(due(12));
  CHECK(due(20));
  CHECK_FALSE(due(24));
  CHECK(due(25));
  CHECK_FALSE(due(26));
}

TEST_CASE("sets are told apart by their numbers") {
  StallWatch watch({1, 0});
  RankPending answer = Answer(0, {{1, "a"}});
  answer.list.set = 3;
  watch.Take({{answer}, {}}, At(0));
  answer.list.set = 4;
  const auto waiting = watch.Take({{answer}, {}}, At(5));
  REQUIRE(waiting.size() == 1);
  CHECK(waiting[0].set == 4);
  CHECK(waiting[0].waited_s == 0);
}

TEST_CASE("a tensor that goes on begins anew") {
  StallWatch watch({10, 0});
  const auto due = [&](uint64_t sequence, double now) {
    return watch.Due({watch.Take({{Answer(0, {{sequence, "a"}})}, {}}, At(now))[0].waited_s},
                     At(now));
  };
  CHECK_FALSE(due(1, 0));
  CHECK(due(1, 11));
  CHECK_FALSE(due(2, 12));
  CHECK_FALSE(due(2, 21));
  CHECK(due(2, 22.5));
}

TEST_CASE("one that waits for longer, or is told already, hides no other") {
  StallWatch watch({60, 4});
  CHECK(watch.Due({4.5, 1}, At(10)));
  CHECK_FALSE(watch.Due({5.5, 2}, At(11)));
  CHECK_FALSE(watch.Due({6.5, 3}, At(12)));
  CHECK(watch.Due({7.5, 4}, At(13)));
  CHECK_FALSE(watch.Due({8.5, 5}, At(14)));
}

TEST_CASE("questions are a quarter of the limit apart, within bounds") {
  CHECK(StallWatch({60, 0}).period() == std::chrono::seconds(15));
  CHECK(StallWatch({1, 0}).period() == std::chrono::milliseconds(250));
  CHECK(StallWatch({0.1, 0}).period() == std::chrono::milliseconds(100));
  CHECK(StallWatch({60, 2}).period() == std::chrono::milliseconds(500));
  CHECK(StallWatch({60, 600}).period() == std::chrono::seconds(15));
}

}  // namespace
}  // namespace hvd::daemon
