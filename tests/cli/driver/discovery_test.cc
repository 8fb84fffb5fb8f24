// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/discovery.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

constexpr double kNever = std::numeric_limits<double>::infinity();

// A Discovery and all that it has said.
struct Table {
  explicit Table(const RunOptions& options)
      : discovery(options, {[this](const std::vector<HostSlots>& hosts) {
                              std::string list;
                              for (const HostSlots& host : hosts) {
                                absl::StrAppend(&list, host.name, ":", host.slots, " ");
                              }
                              lists.push_back(list);
                            },
                            [this](const std::string& why) { failures.push_back(why); },
                            [this](const std::string& whose) { over.push_back(whose); },
                            [this](const std::string& text) { said.push_back(text); },
                            [this](const Frame& frame) {
                              asked.push_back(frame.text);
                              return spawner_takes;
                            }}) {}

  void Answer(double now, const Words& pieces, int wait_status = 0, LookEnd end = LookEnd::kEnded) {
    for (const std::string& piece : pieces) {
      Frame text;
      text.kind = FrameKind::kLookText;
      text.text = piece;
      discovery.Heard(text, now);
    }
    Frame ended;
    ended.kind = FrameKind::kLookEnded;
    ended.index = static_cast<uint32_t>(end);
    ended.number = wait_status;
    discovery.Heard(ended, now);
  }

  bool spawner_takes = true;
  Words asked, lists, failures, over, said;
  Discovery discovery;
};

RunOptions Elastic() {
  RunOptions options;
  options.elastic.emplace().discovery_interval_s = 2;
  options.is_local_host = [](const HostSlots&) { return false; };
  return options;
}

RunOptions WithScript() {
  RunOptions options = Elastic();
  options.elastic->discovery_script = "./h -a";
  return options;
}

RunOptions WithFile() {
  RunOptions options = Elastic();
  options.elastic->hostfile = "/d/hosts";
  options.hosts.emplace_back().name = "a";
  return options;
}

TEST_CASE("a manager is asked for the nodes of its job, which it states no slots of") {
  RunOptions options = Elastic();
  options.manager = "Slurm job 7";
  options.elastic->manager_look = "ask";
  options.hosts.resize(2);
  options.hosts[0].name = "n1";
  options.hosts[1].name = "n2";
  options.hosts[1].slots = 4;
  Table table(options);
  table.discovery.Tick(5);
  CHECK(table.lists == Words{"n1:1 n2:4 "});
  CHECK(table.asked == Words{std::string("/bin/sh\0-c\0ask", 14)});
  table.Answer(6, {"n2\n"});
  CHECK(table.lists.back() == "n2:4 ");
  table.discovery.Tick(8);
  table.Answer(9, {}, 1 << 8);
  CHECK(table.lists.size() == 2);
  REQUIRE(table.said.size() == 1);
  CHECK_THAT(table.said[0], Contains("the nodes of Slurm job 7 are not known") &&
                                Contains("code 1") && Contains("the hosts stay as they were"));
  CHECK(table.over.empty());
  table.discovery.Tick(20);
  table.Answer(21, {}, kJobIsOver << 8);
  CHECK(table.over == Words{"Slurm job 7"});
  CHECK(table.discovery.deadline() == kNever);
  CHECK(table.said.size() == 1);
}

TEST_CASE("a script of the person's may end with any code") {
  RunOptions options = WithScript();
  options.hosts.emplace_back().name = "a";
  Table table(options);
  table.discovery.Tick(5);
  table.Answer(6, {}, kJobIsOver << 8);
  CHECK(table.over.empty());
  CHECK(table.said.size() == 1);
}

TEST_CASE("a static job never looks") {
  Table table{RunOptions()};
  CHECK(table.discovery.deadline() == kNever);
  table.discovery.Tick(5);
  CHECK(table.asked.empty());
}

TEST_CASE("hosts of a command line are told once") {
  RunOptions options = Elastic();
  options.hosts.emplace_back().name = "a";
  Table table(options);
  CHECK(table.discovery.deadline() <= 0);
  table.discovery.Tick(5);
  table.discovery.Tick(6);
  CHECK(table.lists == Words{"a:1 "});
  CHECK(table.asked.empty());
  CHECK(table.discovery.deadline() == kNever);
}

TEST_CASE("a script is asked at the start, and again an interval after each answer") {
  Table table(WithScript());
  table.discovery.Tick(5);
  CHECK(table.asked == Words{std::string("/bin/sh\0-c\0./h -a", 17)});
  CHECK(table.discovery.deadline() == kNever);
  table.discovery.Tick(50);
  CHECK(table.asked.size() == 1);
  table.Answer(8, {"a:1\nb", ":3\n"});
  CHECK(table.lists == Words{"a:1 b:3 "});
  CHECK(table.discovery.deadline() == 10);
  table.discovery.Tick(9);
  CHECK(table.asked.size() == 1);
  table.discovery.Tick(10);
  CHECK(table.asked.size() == 2);
  table.Answer(11, {"a:1\nb:3\n"});
  CHECK(table.lists.size() == 1);
  table.discovery.Tick(13);
  table.Answer(14, {});
  CHECK(table.lists.back().empty());
  CHECK(table.lists.size() == 2);
}

TEST_CASE("a first look that fails is the end of the looks") {
  Table table(WithScript());
  table.discovery.Tick(5);
  table.Answer(6, {"a\n"}, 3 << 8);
  CHECK(table.failures == Words{"the --host-discovery-script \"./h -a\" exited with code 3"});
  CHECK(table.lists.empty());
  CHECK(table.discovery.deadline() == kNever);
}

TEST_CASE("a later look that fails keeps the hosts, is told once, and is tried again") {
  Table table(WithScript());
  table.discovery.Tick(5);
  table.Answer(6, {"a\n"});
  for (int now = 8; now < 40; now += 2) {
    table.discovery.Tick(now);
    table.Answer(now, {}, 9, LookEnd::kTooLong);
  }
  CHECK(table.lists == Words{"a:1 "});
  CHECK(table.failures.empty());
  REQUIRE(table.said.size() == 1);
  CHECK_THAT(table.said[0], Contains("did not end within 10 s\n  the hosts stay as they were"));
  CHECK(table.asked.size() == 17);
}

TEST_CASE("a hostfile is read by the spawner's process, and told when two looks agree") {
  Table table(WithFile());
  table.discovery.Tick(5);
  CHECK(table.asked == Words{std::string("cat\0--\0/d/hosts", 15)});
  CHECK(table.lists == Words{"a:1 "});
  table.Answer(5, {"a\nb\n"});
  CHECK(table.lists.size() == 1);
  table.discovery.Tick(7);
  table.Answer(7, {"a\nb\n"});
  CHECK(table.lists.back() == "a:1 b:1 ");
}

TEST_CASE("a spawner that takes nothing now is asked later; after Stop nobody is") {
  Table table(WithScript());
  table.spawner_takes = false;
  table.discovery.Tick(5);
  CHECK(table.discovery.deadline() == 7);
  table.spawner_takes = true;
  table.discovery.Tick(7);
  table.discovery.Stop();
  table.Answer(8, {"a\n"});
  CHECK(table.lists.empty());
  CHECK(table.discovery.deadline() == kNever);
}

}  // namespace
}  // namespace hvd::cli
