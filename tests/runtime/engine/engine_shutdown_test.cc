// SPDX-License-Identifier: Apache-2.0
// A rank that calls hvd_shutdown on one thread while others of its threads are inside a call.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

using test::FillSum;
using test::Problems;
using test::RunWorld;
using test::Sum;

// The call in which the rank is blocked.
enum class Blocked { kSmallSum, kLargeSum, kJoin };

void Fill(Blocked what, Request* request, std::vector<float>* data) {
  data->assign(what == Blocked::kLargeSum ? 300000 : 10, 1.0f);
  if (what != Blocked::kJoin) return FillSum(request, "never", data);
  request->signature.kind = RequestKind::kJoin;
  request->name = "\x03join";
}

bool Says(const absl::Status& status, const std::string& text) {
  return absl::IsAborted(status) && status.message().find(text) != std::string::npos;
}

// The others leave then too, in any order; or, on the host of one that has joined, work on until
// that ends. (Inside a collective a rank of another host hears of the end from the network, which
// this loopback never loses.)
void BeOther(Blocked what, Engine& engine, Problems& problems) {
  if (what != Blocked::kJoin || engine.world().topology().hosts().size() > 1) return;
  std::vector<float> x(10, 1.0f);
  absl::Status status;
  while (status.ok()) status = Sum(engine, "x", &x);
  problems.Expect(Says(status, "has called shutdown before its join"), status.ToString());
}

struct Scene {
  std::vector<HostShape> hosts;
  Blocked what;
  int rank;  // that is blocked and leaves
  bool by_handle;
};

std::string ShutDownBeside(const Scene& scene) {
  std::atomic<bool> is_blocked{false};
  std::atomic<int> inside{0};
  return RunWorld(scene.hosts, [&](Engine& engine, Problems& problems) {
    // All: this network tells nobody who is still on his way in that the epoch has ended.
    ++inside;
    while (inside.load() < engine.world().topology().size()) std::this_thread::yield();
    if (engine.world().rank() != scene.rank) {
      while (!is_blocked.load()) std::this_thread::yield();
      return BeOther(scene.what, engine, problems);
    }
    std::vector<float> data;
    Request request;
    Fill(scene.what, &request, &data);
    std::thread blocked([&] {
      absl::Status status;
      if (scene.by_handle) status = engine.Submit(&request);
      if (status.ok()) status = scene.by_handle ? engine.Wait(&request) : engine.Run(&request);
      problems.Expect(Says(status, "shutdown"), status.ToString());
    });
    while (ActivityAt(engine.world().watch()).pending.load() == 0) std::this_thread::yield();
    is_blocked.store(true);
    engine.Shutdown();
    blocked.join();
  });
}

const std::vector<std::vector<HostShape>> kWorlds = {
    {{"a", 2}}, {{"a", 3}}, {{"a", 1}, {"b", 1}}, {{"a", 2}, {"b", 2}}};

TEST_CASE("a shutdown ends what the rank's other threads wait for") {
  for (const std::vector<HostShape>& hosts : kWorlds) {
    const int last = Topology(hosts).size() - 1;
    for (const Blocked what : {Blocked::kSmallSum, Blocked::kLargeSum, Blocked::kJoin}) {
      for (const int rank : {0, last}) {
        for (const bool by_handle : {false, true}) {
          CAPTURE(hosts.size(), last, static_cast<int>(what), rank, by_handle);
          for (int round = 0; round < 3; ++round) {
            CHECK(ShutDownBeside({hosts, what, rank, by_handle}) == "");
          }
        }
      }
    }
  }
}

// The rank that leaves has marked it directly, and the others cannot go that way: it is larger than
// a mark holds, and they do not wait for it alone.
TEST_CASE("what a rank has marked directly before it leaves goes the others' way") {
  for (const int size : {2, 3}) {
    std::atomic<bool> is_left{false};
    CHECK(RunWorld({{"a", size}}, [&](Engine& engine, Problems& problems) {
            std::vector<float> x(5000, 1.0f);
            const auto wanted = static_cast<float>(size);
            if (engine.world().rank() != 0) {
              while (!is_left.load()) std::this_thread::yield();
              Request request;
              FillSum(&request, "x", &x);
              problems.Expect(engine.Submit(&request).ok(), "submit");
              const absl::Status status = engine.Wait(&request);
              problems.Expect(status.ok() && x.back() == wanted, status.ToString());
              return;
            }
            std::thread blocked([&] {
              const absl::Status status = Sum(engine, "x", &x);
              problems.Expect(status.ok() && x.back() == wanted, status.ToString());
            });
            while (ActivityAt(engine.world().watch()).pending.load() == 0)
              std::this_thread::yield();
            engine.BeginLeave();
            is_left.store(true);
            engine.FinishLeave();
            blocked.join();
          }) == "");
  }
}

// Rank 1 leaves, so rank 0 is refused what it asks for then; and another thread of rank 1 asks for
// the same after all, if it has not heard yet that the epoch has ended.
void AskAfterAll(Engine& engine, Problems& problems, std::atomic<int>* stage) {
  const auto await = [stage](int wanted) {
    while (stage->load() < wanted) std::this_thread::yield();
  };
  std::vector<float> data(5000, 1.0f);
  Request request;
  FillSum(&request, "x", &data);
  if (engine.world().rank() == 0) {
    await(1);
    problems.Expect(absl::IsAborted(engine.Submit(&request)), "not refused");
    stage->store(2);
    return await(3);
  }
  engine.BeginLeave();
  stage->store(1);
  await(2);
  const bool submitted = engine.Submit(&request).ok();
  stage->store(3);
  if (submitted) problems.Expect(absl::IsAborted(engine.Wait(&request)), "not ended");
  engine.FinishLeave();
}

TEST_CASE("a shutdown ends although the schedule names what was refused to this rank") {
  for (int round = 0; round < 10; ++round) {
    std::atomic<int> stage{0};
    CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
            AskAfterAll(engine, problems, &stage);
          }) == "");
  }
}

// More than there are turns for.
TEST_CASE("unnamed calls that wait for their turn when a rank leaves are answered") {
  constexpr size_t kCalls = 2500;
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> is_left{false};
    CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
            const bool leaves = engine.world().rank() == 0;
            while (!leaves && !is_left.load()) std::this_thread::yield();
            std::vector<std::vector<float>> data(kCalls, std::vector<float>(4, 1.0f));
            std::vector<Request> requests(kCalls);
            for (size_t i = 0; i < kCalls; ++i) {
              FillSum(&requests[i], "", &data[i]);
              problems.Expect(engine.Submit(&requests[i]).ok(), "submit");
            }
            if (leaves) engine.BeginLeave();
            is_left.store(true);
            std::string first;
            for (size_t i = 0; i < kCalls && !leaves; ++i) {
              const absl::Status status = engine.Wait(&requests[i]);
              if (first.empty() && !status.ok()) first = status.ToString();
              if (status.ok() && data[i][3] != 2.0f) first = "wrong sum";
            }
            if (leaves) engine.FinishLeave();
            for (const Request& request : requests) {
              if (first.empty() && !request.result.status.ok())
                first = request.result.status.ToString();
            }
            problems.Expect(first.empty(), first);
          }) == "");
  }
}

}  // namespace
}  // namespace hvd::rt
