// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/elastic_options.h"

#include <catch2/catch.hpp>

#include "tests/cli/front/words/typed_words.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("a job is elastic when its bounds or a script of hosts are given") {
  CHECK_FALSE(Parse({"-np", "2"}).run.elastic.has_value());
  for (const Words& words : {Words{"--min-np", "2"},
                             {"--min-num-proc", "2"},
                             {"--max-np", "2"},
                             {"--max-num-proc", "2"},
                             {"--host-discovery-script", "./hosts"}}) {
    CHECK(Parse(words).run.elastic.has_value());
  }
}

TEST_CASE("each elastic option reaches its field") {
  const ElasticOptions elastic = *Parse({"-np",
                                         "3",
                                         "--min-np",
                                         "2",
                                         "--max-np",
                                         "8",
                                         "--slots-per-host",
                                         "4",
                                         "--host-discovery-script",
                                         "./hosts --all",
                                         "--reset-limit",
                                         "0",
                                         "--elastic-timeout",
                                         "2m",
                                         "--blacklist-cooldown-range",
                                         "5",
                                         "20s",
                                         "--membership-change",
                                         "now",
                                         "--discovery-interval",
                                         "250ms"})
                                      .run.elastic;
  CHECK(elastic.min_np == 2);
  CHECK(elastic.max_np == 8);
  CHECK(elastic.slots_per_host == 4);
  CHECK(elastic.discovery_script == "./hosts --all");
  CHECK(elastic.reset_limit == 0);
  CHECK(elastic.elastic_timeout_s == 120);
  CHECK(elastic.cooldown_least_s == 5);
  CHECK(elastic.cooldown_most_s == 20);
  CHECK(elastic.change == MembershipChange::kNow);
  CHECK(elastic.discovery_interval_s == 0.25);
  CHECK(Parse({"--min-np", "2", "--slots", "3"}).run.elastic->slots_per_host == 3);
  CHECK(Parse({"--min-np", "2", "--membership-change", "drain"}).run.elastic->change ==
        MembershipChange::kDrain);
}

TEST_CASE("what is not given keeps its default; the least is -np, as Horovod's") {
  const ElasticOptions fresh;
  const ElasticOptions elastic = *Parse({"-np", "3", "--max-np", "4"}).run.elastic;
  CHECK(elastic.min_np == 3);
  CHECK(elastic.discovery_interval_s == fresh.discovery_interval_s);
  CHECK(elastic.elastic_timeout_s == 600);
  CHECK(elastic.reset_limit == -1);
  CHECK(elastic.cooldown_least_s == 10);
  CHECK(elastic.cooldown_most_s == 600);
  CHECK(elastic.change == MembershipChange::kDrain);
  CHECK(Parse({"--max-np", "4"}).run.elastic->min_np == 0);  // the plan knows the slots
  CHECK(Parse({"--max-np", "4"}).run.lease_s == 3);
  CHECK(Parse({"--max-np", "4", "--lease", "10"}).run.lease_s == 10);
}

TEST_CASE("the bounds stand in order") {
  CHECK(Refusal({"-np", "2", "--min-np", "3"}) ==
        "--min-np is more than -np 2\n  --min-np 3\n           ^\n  at most 2, or a larger -np");
  CHECK_THAT(Refusal({"-np", "4", "--max-np", "3"}), StartsWith("--max-np is less than -np 4\n"));
  CHECK_THAT(Refusal({"--min-np", "4", "--max-np", "3"}),
             StartsWith("--max-np is less than --min-np 4\n"));
  CHECK(Parse({"-np", "2", "--min-np", "2", "--max-np", "2"}).run.elastic.has_value());
}

TEST_CASE("the script excludes other lists of hosts") {
  for (const Words& words : {Words{"-H", "a:1"}, {"--hostfile", "f"}}) {
    Words all = {"--host-discovery-script", "./hosts", words[0], words[1]};
    CHECK(Refusal(all) ==
          words[0] + " and --host-discovery-script exclude each other; keep one of them");
  }
  CHECK_THAT(Refusal({"--host-discovery-script", "  "}),
             StartsWith("--host-discovery-script names"));
  CHECK_THAT(Refusal({"--host-discovery-script", std::string(40000, 'x')}),
             Contains("40000 bytes; put that into a file"));
}

TEST_CASE(
    "what only an elastic job has is refused in a static one, and it is said what makes one") {
  for (const Words& words : {Words{"--slots-per-host", "2"},
                             {"--discovery-interval", "2"},
                             {"--elastic-timeout", "2"},
                             {"--reset-limit", "2"},
                             {"--blacklist-cooldown-range", "2", "3"},
                             {"--membership-change", "now"}}) {
    CHECK(Refusal(words) == words[0] +
                                " is for jobs whose members come and go; --min-np, --max-np "
                                "or --host-discovery-script makes one");
  }
}

TEST_CASE("elastic values that make no sense are refused by name") {
  const auto refusal = [](const Words& words) {
    Words all = {"--min-np", "1"};
    all.insert(all.end(), words.begin(), words.end());
    return Refusal(all);
  };
  CHECK_THAT(refusal({"--max-np", "0"}), StartsWith("--max-np must be a number from 1 to 65536"));
  CHECK_THAT(refusal({"--min-np", "-1"}), StartsWith("--min-np must be a number from 1 to 65536"));
  CHECK_THAT(refusal({"--slots", "129"}),
             StartsWith("--slots-per-host must be a number from 1 to"));
  CHECK_THAT(refusal({"--reset-limit", "-1"}), StartsWith("--reset-limit must be a number from 0"));
  CHECK_THAT(refusal({"--discovery-interval", "50ms"}), Contains("must be at least 0.1s"));
  CHECK_THAT(refusal({"--elastic-timeout", "0"}), Contains("must be at least 0.001s"));
  CHECK_THAT(refusal({"--membership-change", "soon"}),
             Contains("must be drain or now, not \"soon"));
}

TEST_CASE("a cooldown is two times, the shorter one first") {
  const auto refusal = [](const Words& words) {
    Words all = {"--min-np", "1", "--blacklist-cooldown-range"};
    all.insert(all.end(), words.begin(), words.end());
    return Refusal(all);
  };
  CHECK(refusal({"20", "10"}) ==
        "--blacklist-cooldown-range: the first time is longer than the second\n"
        "  --blacklist-cooldown-range 20 10\n"
        "                             ^\n"
        "  for example --blacklist-cooldown-range 10 600");
  CHECK_THAT(refusal({"10", "long"}), StartsWith("--blacklist-cooldown-range: \"long\" is not a"));
  CHECK_THAT(refusal({"10", "-np", "2"}), Contains("takes two values, and one is missing"));
  CHECK_THAT(refusal({"10", "--"}), Contains("takes two values, and one is missing"));
  CHECK_THAT(refusal({"10", ""}), Contains("is empty"));
  CHECK_THAT(refusal({"0.5", "10"}), Contains(" must begin with 1s or more"));
  CHECK(
      Parse({"--min-np", "1", "--blacklist-cooldown-range=7", "8"}).run.elastic->cooldown_most_s ==
      8);
}

}  // namespace
}  // namespace hvd::cli
