// SPDX-License-Identifier: Apache-2.0
// Process sets of whole jobs, each rank a thread of this process.
#include "runtime/sets/process_sets.h"

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <deque>
#include <thread>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

using test::Problems;
using test::RunWorlds;

using SetsBody = std::function<void(ProcessSets&, int rank, Problems&)>;

// Runs `body` as each rank of `hosts`, then leaves all sets.
std::string RunSets(const std::vector<HostShape>& hosts, const SetsBody& body) {
  return RunWorlds(hosts, [&](std::unique_ptr<EpochWorld> world, Problems& problems) {
    const int rank = world->rank();
    ProcessSets sets;
    sets.Start({std::make_shared<Engine>(std::move(world), EngineConfig())}, EngineConfig());
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

// Makes sets of these ranks; then rank 0 leaves, and the others sum in one of them each.
struct Scene {
  std::vector<std::vector<int32_t>> sets;
  int32_t waits_in[3];  // by rank
};

std::string LeaveBefore(const std::vector<HostShape>& hosts, const Scene& scene) {
  std::atomic<int> inside{0};
  return RunSets(hosts, [&](ProcessSets& sets, int rank, Problems& problems) {
    for (const std::vector<int32_t>& ranks : scene.sets) Add(sets, ranks, problems);
    // All: one that is still on its way in would hear of the end there.
    ++inside;
    while (inside.load() < 3) std::this_thread::yield();
    if (rank != 0) ExpectLeft(Sum(sets, scene.waits_in[rank]), problems);
  });
}

TEST_CASE("a rank leaves all its sets at once: it waits for nobody who waits for it") {
  for (const std::vector<HostShape>& hosts : kWorlds) {
    CHECK(LeaveBefore(hosts, {{{0, 1}}, {0, 0, 0}}) == "");
    CHECK(LeaveBefore(hosts, {{{0, 2}, {0, 1}}, {0, 2, 0}}) == "");
  }
}

void Join(ProcessSets& sets, Problems& problems) {
  const auto join = std::make_shared<SetRequests>();
  {
    const JoinTurn turn(&sets.joins());
    problems.Expect(turn.taken() && !JoinTurn(&sets.joins()).taken(), "one join at a time");
    const absl::StatusOr<size_t> submitted = sets.Join(join, [] {});
    problems.Expect(submitted.ok() && *submitted == join->requests.size(), "submitted");
  }
  for (size_t i = 0; i < join->requests.size(); ++i) {
    const absl::Status joined = join->EngineOf(i).lock()->Wait(join->requests[i].get());
    problems.Expect(joined.ok(), joined.ToString());
  }
  problems.Expect(join->requests[0]->result.number >= 0, "the last rank");
  problems.Expect(join->is_done() && !sets.is_joining(), "it is over");
}

absl::Status Broadcast(ProcessSets& sets, int32_t set) {
  float value = 1;
  Request request;
  request.name = "b";
  request.signature.kind = RequestKind::kBroadcast;
  request.signature.dtype = HVD_FLOAT32;
  request.buffers.input = request.buffers.output = &value;
  return sets.Find(set)->engine->Run(&request);
}

TEST_CASE("a rank that has joined takes part in the work of all its sets") {
  for (const std::vector<HostShape>& hosts : kWorlds) {
    CAPTURE(hosts.size(), hosts[0].ranks);
    CHECK(RunSets(hosts, [](ProcessSets& sets, int rank, Problems& problems) {
            Add(sets, {0, 1}, problems);
            Add(sets, {1, 2}, problems);
            for (int round = 0; round < 3; ++round) {
              for (const size_t count : {10u, 5000u}) {
                for (int set = 0; rank == 1 && set < 3; ++set) {
                  std::vector<float> x(count, 2.0f);
                  const absl::Status status = test::Sum(*sets.Find(set)->engine, "x", &x);
                  problems.Expect(status.ok() && x.back() == 2.0f, status.ToString());
                }
              }
              if (rank == 1) {
                const absl::Status status = Broadcast(sets, 1);
                problems.Expect(absl::IsInvalidArgument(status), status.ToString());
                problems.Expect(status.message().find("rank 0") != std::string::npos,
                                std::string(status.message()));
              }
              Join(sets, problems);
              for (int set = 0; set < 3; ++set) {
                if (sets.Find(set)->engine == nullptr) continue;  // no member
                const absl::Status status = Sum(sets, set);
                problems.Expect(status.ok(), status.ToString());
              }
            }
          }) == "");
  }
}

// Each rank in another set than those that it would wait for.
TEST_CASE("what a rank has pending in any set when it joins is done with neutral values") {
  for (const std::vector<HostShape>& hosts : kWorlds) {
    CAPTURE(hosts.size(), hosts[0].ranks);
    CHECK(RunSets(hosts, [](ProcessSets& sets, int rank, Problems& problems) {
            Add(sets, {0, 1}, problems);
            Add(sets, {1, 2}, problems);
            for (int round = 0; round < 5; ++round) {
              std::vector<std::vector<float>> data;
              std::deque<Request> sums;
              for (int set = 0; set < 3; ++set) {
                Engine* const engine = sets.Find(set)->engine.get();
                if (engine == nullptr) continue;  // no member
                for (const size_t count : {10u, 5000u}) {
                  data.emplace_back(count, rank + 1.0f);
                  test::FillSum(&sums.emplace_back(),
                                std::to_string(rank) + " of " + std::to_string(count),
                                &data.back());
                  problems.Expect(engine->Submit(&sums.back()).ok(), "submit");
                }
              }
              Join(sets, problems);
              for (const Request& sum : sums) {
                problems.Expect(sum.done.load() && sum.result.status.ok(),
                                sum.result.status.ToString());
              }
              for (const std::vector<float>& x : data) {
                problems.Expect(x.back() == rank + 1.0f, "sum " + std::to_string(x.back()));
              }
            }
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
              problems.Expect(sums[set].done && sums[set].result.status.ok(),
                              "set " + std::to_string(set));
              problems.Expect(data[set].back() == (set == 0 ? 3.0f : 2.0f), "wrong sum");
            }
          }) == "");
  }
}

TEST_CASE("members make a set by themselves; one that leaves instead is named") {
  for (const std::vector<HostShape>& hosts : kWorlds) {
    std::barrier removed(2);  // rank 1's next call ends the epoch, in which rank 2 may still remove
    CHECK(RunSets(hosts, [&removed](ProcessSets& sets, int rank, Problems& problems) {
            if (rank == 0) return;  // leaves
            int32_t id = -1, other = -1;
            const absl::Status made = sets.AddMembers({1, 2}, "a", &id);
            problems.Expect(made.ok(), made.ToString());
            problems.Expect(absl::IsAlreadyExists(sets.AddMembers({2, 1}, "a", &other)), "twice");
            problems.Expect(other == id && Sum(sets, id).ok(), "of no use");
            problems.Expect(sets.Remove(id).ok() && sets.Find(id) == nullptr, "remove");
            removed.arrive_and_wait();
            const absl::Status left = sets.AddMembers({0, 1, 2}, "a", &id);
            problems.Expect(
                absl::IsAborted(left) &&
                    left.message().find("rank 0 has left the job (shutdown)") != std::string::npos,
                left.ToString());
          }) == "");
  }
}

}  // namespace
}  // namespace hvd::rt
