// SPDX-License-Identifier: Apache-2.0
// More names than there are direct numbers.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <random>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

using test::FillSum;
using test::Problems;
using test::RunWorld;
using test::Sum;

// Returns the batches of the log: calls that go directly are in none.
uint64_t Batches(const Engine& engine) {
  const WatchPlace place = engine.world().watch();
  return WatchOf(place.page, place.local_rank).metrics[place.region].batches.load();
}

void SumMany(Engine& engine, Problems& problems, const std::string& name, int times) {
  for (int i = 0; i < times; ++i) {
    std::vector<float> x(5, 1.0f);
    const absl::Status status = Sum(engine, name, &x);
    const auto ranks = static_cast<float>(engine.world().topology().size());
    problems.Expect(status.ok() && x[4] == ranks, name + ": " + status.ToString());
  }
}

TEST_CASE("a name that is used over and over goes directly, after thousands that are not") {
  CHECK(RunWorld({{"a", 2}}, [](Engine& engine, Problems& problems) {
          for (int i = 0; i < 5000; ++i) {
            SumMany(engine, problems, "once " + std::to_string(i), 1);
          }
          for (const std::string name : {"late", "later", ""}) {
            SumMany(engine, problems, name, 30);
            const uint64_t before = Batches(engine);
            SumMany(engine, problems, name, 300);
            problems.Expect(Batches(engine) == before, "'" + name + "' goes by the log");
          }
          // An early one has lost its number; it finds another.
          SumMany(engine, problems, "once 0", 30);
          const uint64_t before = Batches(engine);
          SumMany(engine, problems, "once 0", 100);
          problems.Expect(Batches(engine) == before, "'once 0' goes by the log");
        }) == "");
}

// A phase's names, in an order of the rank's own, all at once, some too large to go directly, and
// one that ranks ask for differently.
void UseNames(Engine& engine, Problems& problems, int phase, int turn) {
  const int rank = engine.world().rank();
  std::vector<int> names(500);
  for (int i = 0; i < 500; ++i) names[i] = phase * 250 + i;
  std::mt19937 random(static_cast<uint32_t>(phase * 100 + turn * 10 + rank));
  std::shuffle(names.begin(), names.end(), random);
  std::vector<std::vector<float>> data;
  std::vector<std::unique_ptr<Request>> requests;
  for (const int name : names) {
    const bool is_large = (name + turn) % 97 == 0;
    const bool differs = (name + turn) % 89 == 0 && rank == 1;
    data.emplace_back(is_large ? 5000 : differs ? 7 : 6, 1.0f);
    requests.push_back(std::make_unique<Request>());
    FillSum(requests.back().get(), "name " + std::to_string(name), &data.back());
    problems.Expect(engine.Submit(requests.back().get()).ok(), "submit");
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const bool differs = (names[i] + turn) % 89 == 0 && (names[i] + turn) % 97 != 0;
    const absl::Status status = engine.Wait(requests[i].get());
    const bool fine = differs ? absl::IsInvalidArgument(status) : status.ok() && data[i][5] == 3.0f;
    problems.Expect(fine, requests[i]->name + ": " + status.ToString());
  }
}

TEST_CASE("numbers that change hands: in any order on each rank, beside joins and mismatches") {
  CHECK(RunWorld({{"a", 3}}, [](Engine& engine, Problems& problems) {
          for (int phase = 0; phase < 16; ++phase) {
            // Back to names of long ago, too.
            const int names = phase % 5 == 4 ? phase / 5 : phase;
            for (int turn = 0; turn < 4; ++turn) UseNames(engine, problems, names, turn);
            if (phase % 3 != 2) continue;
            Request join;
            join.name = "join";
            join.signature.kind = RequestKind::kJoin;
            problems.Expect(engine.Run(&join).ok(), "join");
          }
        }) == "");
}

}  // namespace
}  // namespace hvd::rt
