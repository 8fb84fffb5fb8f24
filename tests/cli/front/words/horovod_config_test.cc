// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/horovod_config.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Words = std::vector<std::string>;

Words Read(const std::string& text) {
  const auto options = ReadHorovodConfig(text, "job.yaml");
  INFO(options.status().message());
  REQUIRE(options.ok());
  Words all;
  for (const BorrowedOption& option : *options)
    all.insert(all.end(), option.words.begin(), option.words.end());
  return all;
}

std::string Refusal(const std::string& text) {
  return std::string(ReadHorovodConfig(text, "job.yaml").status().message());
}

TEST_CASE("every kind of value becomes its flag") {
  CHECK(Read("controller: mpi\n"
             "params:\n"
             "  fusion_threshold_mb: 32\n"
             "  cycle_time_ms: 2.5\n"
             "autotune: {enabled: yes, log_file: \"my log.txt\"}\n"
             "timeline:\n"
             "  filename: t.json  # a comment\n"
             "  mark_cycles: False\n"
             "stall_check:\n"
             "  enabled: off\n"
             "logging:\n"
             "  level: INFO\n"
             "  hide_timestamp: true\n") ==
        Words{"--mpi", "--fusion-threshold-mb", "32", "--cycle-time-ms", "2.5", "--autotune",
              "--autotune-log-file", "my log.txt", "--timeline-filename", "t.json",
              "--no-timeline-mark-cycles", "--no-stall-check", "--log-level", "INFO",
              "--log-without-timestamp"});
}

TEST_CASE("what is empty says nothing") {
  CHECK(Read("").empty());
  CHECK(Read("# nothing yet\n---\n").empty());
  CHECK(Read("params:\nautotune:\n  log_file: ~\n").empty());
}

TEST_CASE("each option knows where it stands") {
  const auto options = ReadHorovodConfig("params:\n  cycle_time_ms: 4\n", "job.yaml");
  REQUIRE(options.ok());
  CHECK(options->front().origin == "job.yaml:2");
  CHECK(options->front().place == "job.yaml:2:18");
  CHECK(options->front().shown == "    cycle_time_ms: 4\n                   ^");
}

TEST_CASE("unknown keys are shown with the nearest") {
  CHECK(Refusal("params:\n  cycle_tme_ms: 4\n") ==
        "job.yaml:2:3: unknown key \"params.cycle_tme_ms\"\n    cycle_tme_ms: 4\n    ^\n"
        "  did you mean params.cycle_time_ms?");
  CHECK_THAT(Refusal("hosts: a:1\n"), StartsWith("job.yaml:1:1: unknown key \"hosts\"\n"));
  CHECK_THAT(Refusal("cycle_time_ms: 4\n"), StartsWith("job.yaml:1:1: unknown key"));
}

TEST_CASE("values of the wrong kind are shown") {
  CHECK_THAT(Refusal("autotune:\n  enabled: perhaps\n"),
             StartsWith("job.yaml:2:12: autotune.enabled must be true or false, not \"perhaps\""));
  CHECK_THAT(Refusal("controller: jsrun\n"), Contains("must be gloo or mpi, not \"jsrun\""));
  CHECK_THAT(Refusal("params:\n  cycle_time_ms: [1, 2]\n"),
             StartsWith("job.yaml:2:18: params.cycle_time_ms must be one value"));
  CHECK_THAT(Refusal("params: 3\n"), Contains("params is a section"));
  CHECK_THAT(Refusal("- params\n"), StartsWith("job.yaml:1:1: the file must have sections"));
  CHECK_THAT(Refusal("params:\n  cycle_time_ms: 1\n  cycle_time_ms: 2\n"),
             StartsWith("job.yaml:3:3: params.cycle_time_ms is there already"));
}

TEST_CASE("what is no YAML is shown where it ceases to be") {
  CHECK_THAT(Refusal("params: {cycle_time_ms: 3\n"), StartsWith("job.yaml:2:1: this is not YAML"));
  CHECK_THAT(Refusal("params:\n\tcycle_time_ms: 3\n"), StartsWith("job.yaml:2:"));
  CHECK_THAT(Refusal("timeline:\n  filename: \"äöü\": 3\n"),
             StartsWith("job.yaml:2:18: ") && Contains("\n" + std::string(19, ' ') + "^"));
}

}  // namespace
}  // namespace hvd::cli
