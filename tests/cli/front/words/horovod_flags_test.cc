// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/horovod_flags.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_split.h"
#include "tests/cli/front/front_worlds.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

constexpr const char* kPage = HVD_TEST_SOURCE "/cli/HOROVOD.md";

FrontWorld WorldWithHook() {
  FrontWorld world = BoxWorld({{"/opt/share/hvd/python/hvd/compat/startup/sitecustomize.py", ""},
                               {"job.yaml", "params:\n"}});
  world.program_directory = "/opt/bin";
  return world;
}

Words Names(const HorovodFlag& flag) { return absl::StrSplit(flag.names, ','); }

// A value that the flag takes.
std::string ValueFor(const std::string& name) {
  if (name == "--log-level") return "INFO";
  if (name == "-H" || name == "--hosts") return "localhost:4";
  if (name == "--config-file") return "job.yaml";
  return std::set<std::string>{"-np", "--num-proc", "--min-np", "--min-num-proc"}.count(name) > 0
             ? "2"
             : "8";
}

bool NeedsElastic(const HorovodFlag& flag) {
  return std::set<std::string>{"--slots-per-host", "--elastic-timeout", "--reset-limit",
                               "--blacklist-cooldown-range"}
             .count(CanonicalName(flag)) > 0;
}

FrontOutcome With(const HorovodFlag& flag, const std::string& name, bool compat = true) {
  Words words = {"-np", "2"};
  if (compat) words.insert(words.end(), {"--compat", "horovod"});
  // Some flags need an elastic job.
  if (NeedsElastic(flag)) words.insert(words.end(), {"--min-np", "1"});
  words.push_back(name);
  for (int i = 0; i < flag.values; ++i) words.push_back(ValueFor(name));
  words.push_back("prog");
  FrontWorld world = WorldWithHook();
  world.read_file = [](const std::string& path) -> absl::StatusOr<std::string> {
    return path == "job.yaml" ? "params:\n" : "localhost slots=4\n";
  };
  world.file_exists = [](const std::string&) { return true; };  // --ssh-identity-file 8
  return Decide(words, world);
}

bool IsQuestion(const std::string& name) {
  return std::set<std::string>{"-h", "--help", "-v", "--version", "-cb", "--check-build"}.count(
             name) > 0;
}

TEST_CASE("each flag of horovodrun has the fate that the table says") {
  for (const HorovodFlag& flag : HorovodFlags()) {
    const std::string words = WordsOf(flag);
    for (const std::string& name : Names(flag)) {
      const FrontOutcome outcome = With(flag, name);
      INFO(name << ": " << outcome.err);
      CHECK(outcome.exit_code == (IsQuestion(name) ? 0 : -1));
      if (IsQuestion(name)) continue;
      CHECK(outcome.options.command == Words{"prog"});
      CHECK(outcome.options.compat_horovod);
      const std::string note = "hvdrun: " + CanonicalName(flag) + " has no effect: ";
      if (flag.fate == HorovodFate::kNote) CHECK(outcome.err == note + words + "\n");
      if (flag.fate != HorovodFate::kNote) CHECK_THAT(outcome.err, !Contains(note));
      const Words& all = outcome.options.environment;
      if (flag.fate == HorovodFate::kSetting)
        CHECK(std::find(all.begin(), all.end(), words) != all.end());
    }
  }
}

TEST_CASE("without --compat, horovodrun's own flags are refused by name") {
  for (const HorovodFlag& flag : HorovodFlags()) {
    if (flag.fate == HorovodFate::kOurs) continue;
    for (const std::string& name : Names(flag)) {
      const FrontOutcome outcome = With(flag, name, false);
      INFO(name << ": " << outcome.err);
      CHECK(outcome.exit_code == 2);
      CHECK_THAT(outcome.err, Contains(name + " is Horovod's; hvdrun takes it with"));
    }
  }
}

TEST_CASE("no spelling and no key stands in the table twice, and each flag explains itself") {
  std::set<std::string> names, keys;
  for (const HorovodFlag& flag : HorovodFlags()) {
    for (const std::string& name : Names(flag)) {
      CHECK(names.insert(name).second);
      CHECK(FindHorovodFlag(name) == &flag);
    }
    if (flag.key != nullptr) CHECK(keys.insert(flag.key).second);
    const bool silent = flag.fate == HorovodFate::kOurs;
    CHECK((silent || !WordsOf(flag).empty()));
    // A variable's name was found in the settings' table.
    CHECK((flag.fate != HorovodFate::kNote || WordsOf(flag).substr(0, 8) != "HOROVOD_"));
  }
  CHECK(FindHorovodFlag("--nonsense") == nullptr);
  CHECK(FindHorovodKey("params.cache_capacity") == FindHorovodFlag("--cache-capacity"));
  CHECK(FindHorovodKey("params") == nullptr);
}

TEST_CASE("flags know their opposites, and every key of a flag without a value has one") {
  const auto opposite = [](const char* name) {
    return CanonicalName(*OppositeOf(*FindHorovodFlag(name)));
  };
  CHECK(opposite("--autotune") == "--no-autotune");
  CHECK(opposite("--no-stall-check") == "--stall-check");
  CHECK(opposite("--log-with-timestamp") == "--log-without-timestamp");
  CHECK(opposite("--log-hide-timestamp") == "--log-with-timestamp");
  CHECK(OppositeOf(*FindHorovodFlag("--verbose")) == nullptr);
  for (const HorovodFlag& flag : HorovodFlags()) {
    if (flag.key == nullptr || flag.values > 0 || std::string(flag.key) == "controller") continue;
    INFO(flag.names);
    CHECK(OppositeOf(flag) != nullptr);
  }
}

TEST_CASE("cli/HOROVOD.md has the table as it is; `test_cli 'write cli/HOROVOD.md'` renews it") {
  std::ifstream file(kPage);
  std::stringstream text;
  text << file.rdbuf();
  CHECK_THAT(text.str(), Contains(HorovodMarkdown()));
}

// No test: it writes the page, and so it runs only when it is asked for by its name.
TEST_CASE("write cli/HOROVOD.md", "[.]") {
  std::ofstream(kPage) << "# horovodrun's flags\n\n"
                          "What `hvdrun --compat horovod`, and hvdrun under the name `horovodrun`, "
                          "do with each. A flag that has no effect is told\nof once. The command "
                          "line beats the config file (`--config-file`, YAML), whose keys are in "
                          "the last column.\n\n"
                       << HorovodMarkdown();
}

}  // namespace
}  // namespace hvd::cli
