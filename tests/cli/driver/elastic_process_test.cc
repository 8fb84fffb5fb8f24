// SPDX-License-Identifier: Apache-2.0
// An elastic job's driver and spawner for real, with daemons that play along.
#include <catch2/catch.hpp>

#include "tests/cli/driver/hvdrun_world.h"
#include "tests/support/patience.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

RunOptions ElasticJob(std::vector<std::string> command, double cooldown_s) {
  RunOptions options = FakeOptions("a:2,b:2", 4, std::move(command));
  options.elastic.emplace();
  options.elastic->min_np = 2;
  options.elastic->elastic_timeout_s = 20;
  options.elastic->cooldown_least_s = options.elastic->cooldown_most_s = cooldown_s;
  return options;
}

TEST_CASE("an elastic job replaces a rank that dies, and ends well") {
  FakeJob job(ElasticJob({"elastic", "b", "rank", "4"}, 100));
  const JobOutcome outcome = job.Wait();
  REQUIRE(outcome.finished);
  INFO(outcome.notices);
  CHECK(outcome.verdict.empty());
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.notices, Contains("epoch 1: 4 ranks on 2 hosts\n"));
  CHECK_THAT(outcome.notices, Contains("rank 2 on b was killed by signal 9 (Killed); epoch 2: "));
  CHECK_THAT(outcome.notices, Contains("; resumed at commit 5 after "));
  CHECK_THAT(outcome.out, Contains("in epoch 2"));
  CHECK(job.AllGone(2));
}

TEST_CASE("an elastic job goes on without a host whose daemon dies") {
  FakeJob job(ElasticJob({"elastic", "b", "host", "2"}, 100));
  const JobOutcome outcome = job.Wait();
  REQUIRE(outcome.finished);
  INFO(outcome.notices);
  CHECK(outcome.verdict.empty());
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.notices,
             Contains("b lost; epoch 2: 2 ranks on 1 host; resumed at commit 5 after "));
  CHECK(job.AllGone(2));
}

TEST_CASE("a host that was lost is reached again, under another number") {
  FakeJob job(ElasticJob({"elastic", "b", "host", "4"}, 0.05));
  const JobOutcome outcome = job.Wait();
  REQUIRE(outcome.finished);
  INFO(outcome.notices);
  CHECK(outcome.verdict.empty());
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.notices, Contains(": 4 ranks on 2 hosts; "));
  CHECK(job.AllGone(2));
}

TEST_CASE("an elastic job with too few ranks says what became of the others") {
  RunOptions options = ElasticJob({"elastic", "b", "host", "4"}, 100);
  options.elastic->min_np = 4;
  options.elastic->elastic_timeout_s = 0.2;
  FakeJob job(std::move(options));
  const JobOutcome outcome = job.Wait();
  REQUIRE(outcome.finished);
  CHECK(outcome.exit_code == 125);
  CHECK_THAT(outcome.verdict, Contains("2 of at least 4 ranks are there"));
  CHECK_THAT(outcome.verdict, Contains("host b: the connection to its hvdd closed"));
  CHECK(job.AllGone(2));
}

}  // namespace
}  // namespace hvd::cli
