// SPDX-License-Identifier: Apache-2.0
#include "cli/report/start_status.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

JobFacts Hosts(std::vector<HostFact::Phase> phases) {
  std::vector<HostShape> shapes;
  for (size_t i = 0; i < phases.size(); ++i) shapes.push_back({"host" + std::to_string(i), 1});
  JobFacts facts = FactsOf(Topology(shapes));
  for (size_t i = 0; i < phases.size(); ++i) facts.hosts[i].phase = phases[i];
  return facts;
}

constexpr auto kStarting = HostFact::kStarting;
constexpr auto kGreeted = HostFact::kGreeted;
constexpr auto kLaunched = HostFact::kLaunched;

TEST_CASE("who is waited for, while hosts are reached and while ranks start") {
  CHECK(StartWords(Hosts({kGreeted, kStarting, kGreeted})) ==
        "starting 2/3 hosts\nwaiting for host1");
  CHECK(StartWords(Hosts({kStarting, kStarting, kStarting})) ==
        "starting 0/3 hosts\nwaiting for host0 and 2 more");
  CHECK(StartWords(Hosts({kStarting})) == "starting 0/1 host\nwaiting for host0");
  CHECK(StartWords(Hosts({kLaunched, kGreeted})) ==
        "starting ranks on 1/2 hosts\nwaiting for host1");
  CHECK(StartWords(Hosts({kLaunched, kLaunched})).empty());
  CHECK(StartWords(Hosts({kStarting, HostFact::kGone})).empty());
}

TEST_CASE("the line counts the seconds and stays within the terminal") {
  const std::string words = "starting 2/3 hosts\nwaiting for host1";
  CHECK(StatusLine(words, 3.14, 80) == "starting 2/3 hosts · 3.1 s · waiting for host1");
  CHECK(StatusLine(words, 3.14, 24) == "starting 2/3 hosts · 3.");
  CHECK(StatusLine(words, 3.14, 21) == "starting 2/3 hosts ·");
  CHECK(StatusLine(words, 3.14, 1).empty());
  CHECK(StatusLine("a\nb\x1b[2J\nc", 0, 80) == "a · 0.0 s · b\\x1b[2J\\nc");
}

}  // namespace
}  // namespace hvd::cli
