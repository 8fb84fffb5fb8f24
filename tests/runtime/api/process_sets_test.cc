// Process sets of whole jobs, each rank a thread of this process.
#include "runtime/api/process_sets.h"

#include <catch2/catch.hpp>

#include "tests/runtime/engine/engine_world.h"

namespace hvd {
namespace {

using test::Problems;
using test::RunWorlds;

using SetsBody = std::function<void(ProcessSets&, int rank, Problems&)>;

// Runs `body` as each rank of `hosts`, then leaves all sets.
std::string RunSets(const std::vector<HostShape>& hosts, const SetsBody& body) {
  return RunWorlds(hosts, [&](std::unique_ptr<EpochWorld> world, Problems& problems) {
    const int rank = world->rank();
    ProcessSets sets;
    sets.Start(std::make_shared<Engine>(std::move(world), EngineConfig()), EngineConfig());
    body(sets, rank, problems);
    sets.Stop();
  });
}

void Add(ProcessSets& sets, const std::vector<int32_t>& ranks, Problems& problems) {
  int32_t id = -1;
  const absl::Status added = sets.Add(ranks, &id);
  problems.Expect(added.ok(), added.ToString());
}

absl::Status Sum(ProcessSets& sets, int32_t set) {
  std::vector<float> data(10, 1.0f);
  return test::Sum(*sets.Find(set)->engine, "x", &data);
}

const std::vector<std::vector<HostShape>> kWorlds = {
    {{"a", 3}}, {{"a", 2}, {"b", 1}}, {{"a", 1}, {"b", 2}}};

void ExpectLeft(const absl::Status& status, Problems& problems) {
  problems.Expect(
      absl::IsAborted(status) && status.message().find("rank 0 has left") != std::string::npos,
      status.ToString());
}

TEST_CASE("a rank leaves all its sets at once: it waits for nobody who waits for it") {
  for (const std::vector<HostShape>& hosts : kWorlds) {
    CHECK(RunSets(hosts, [](ProcessSets& sets, int rank, Problems& problems) {
            Add(sets, {0, 1}, problems);
            if (rank != 0) ExpectLeft(Sum(sets, HVD_GLOBAL_PROCESS_SET), problems);
          }) == "");
  }
}

TEST_CASE("a rank leaves one set while others wait for it in another") {
  for (const std::vector<HostShape>& hosts : kWorlds) {
    CHECK(RunSets(hosts, [](ProcessSets& sets, int rank, Problems& problems) {
            Add(sets, {0, 2}, problems);
            Add(sets, {0, 1}, problems);
            if (rank == 1) ExpectLeft(Sum(sets, 2), problems);
            if (rank == 2) ExpectLeft(Sum(sets, HVD_GLOBAL_PROCESS_SET), problems);
          }) == "");
  }
}

TEST_CASE("what all have submitted to any set comes before their leaving") {
  for (const std::vector<HostShape>& hosts : kWorlds) {
    CHECK(RunSets(hosts, [](ProcessSets& sets, int rank, Problems& problems) {
            const std::vector<std::vector<int32_t>> pairs = {{0, 1}, {1, 2}};
            for (const std::vector<int32_t>& ranks : pairs) Add(sets, ranks, problems);
            std::vector<float> data[3];
            Request sums[3];
            for (int i = 0; i < 3; ++i) {
              const int set = rank == 0 ? 2 - i : i;
              Engine* const engine = sets.Find(set)->engine.get();
              if (engine == nullptr) continue;  // no member
              data[set].assign(5000, 1.0f);
              test::FillSum(&sums[set], "x", &data[set]);
              problems.Expect(engine->Submit(&sums[set]).ok(), "submit");
            }
            sets.Stop();
            for (int set = 0; set < 3; ++set) {
              if (data[set].empty()) continue;
              problems.Expect(sums[set].done && sums[set].status.ok(),
                              "set " + std::to_string(set));
              problems.Expect(data[set].back() == (set == 0 ? 3.0f : 2.0f), "wrong sum");
            }
          }) == "");
  }
}

}  // namespace
}  // namespace hvd
