// SPDX-License-Identifier: Apache-2.0
#include "cli/front/python_hook.h"

#include <catch2/catch.hpp>

#include "tests/cli/front/front_worlds.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Words = std::vector<std::string>;

constexpr const char* kCheckout = "/src/python/hvd/compat/startup";
constexpr const char* kInstalled = "/opt/share/hvd/python/hvd/compat/startup";

FrontWorld WorldWith(const std::string& program_directory, const std::string& hook) {
  FrontWorld world = BoxWorld({{hook + "/sitecustomize.py", ""}});
  world.program_directory = program_directory;
  return world;
}

std::string PythonPath(const RunOptions& run) {
  for (const std::string& entry : run.environment) {
    if (entry.rfind("PYTHONPATH=", 0) == 0) return entry.substr(11);
  }
  return "";
}

std::string PathOf(Words words, const FrontWorld& world) {
  words.insert(words.end(), {"-np", "1", "--compat", "horovod", "prog"});
  const FrontOutcome outcome = Decide(words, world);
  INFO(outcome.err);
  CHECK(outcome.exit_code == -1);
  return PythonPath(outcome.options);
}

TEST_CASE("the ranks' Python finds the hook before all else") {
  CHECK(PathOf({}, WorldWith("/src/build/bin", kCheckout)) == kCheckout);
  CHECK(PathOf({}, WorldWith("/opt/bin", kInstalled)) == kInstalled);
  CHECK(PathOf({}, WorldWith("/venv/hvd/bin", "/venv/hvd/compat/startup")) ==
        "/venv/hvd/compat/startup");
}

TEST_CASE("the person's own PYTHONPATH stays behind it, wherever it was set") {
  FrontWorld world = WorldWith("/src/build/bin", kCheckout);
  CHECK(PathOf({"-x", "PYTHONPATH=/mine"}, world) == std::string(kCheckout) + ":/mine");
  world.environment.push_back("PYTHONPATH=/a:/b");
  CHECK(PathOf({}, world) == std::string(kCheckout) + ":/a:/b");
  world.environment.back() = "PYTHONPATH=";
  CHECK(PathOf({}, world) == kCheckout);
}

TEST_CASE("hosts that have hvd at --prefix find it there") {
  CHECK(PathOf({"--prefix", "/other"}, WorldWith("/src/build/bin", kCheckout)) ==
        std::string(kCheckout) + ":/other/share/hvd/python/hvd/compat/startup");
}

TEST_CASE("an hvdrun without its Python package says where it looked, and what to do") {
  FrontWorld world = BoxWorld();
  world.program_directory = "/opt/bin";
  const FrontOutcome outcome = Decide({"-np", "1", "--compat", "horovod", "prog"}, world);
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, StartsWith("hvdrun: --compat horovod needs hvd's Python package"));
  CHECK_THAT(outcome.err, Contains(kInstalled));
  CHECK_THAT(outcome.err, Contains("install hvd with it"));
}

TEST_CASE("without --compat the ranks' PYTHONPATH is the person's") {
  const FrontOutcome outcome = Decide({"-np", "1", "prog"}, WorldWith("/src/build/bin", kCheckout));
  CHECK(PythonPath(outcome.options).empty());
}

TEST_CASE("another --compat is refused with the one that there is") {
  const FrontOutcome outcome = Decide({"-np", "1", "--compat", "mpi", "prog"});
  CHECK(outcome.exit_code == 2);
  CHECK_THAT(outcome.err, StartsWith("hvdrun: --compat must be horovod, not \"mpi\""));
  CHECK_THAT(outcome.err, Contains("  --compat mpi\n           ^"));
}

}  // namespace
}  // namespace hvd::cli
