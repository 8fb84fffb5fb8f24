// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/engine.h"

#include <catch2/catch.hpp>
#include <thread>

#include "tests/runtime/engine/engine_world.h"
#include "tests/support/patience.h"

namespace hvd::rt {
namespace {

using test::FillSum;
using test::Problems;
using test::RunWorld;
using test::Sum;

const std::vector<std::vector<HostShape>> kWorlds = {
    {{"a", 1}},           {{"a", 2}},           {{"a", 5}},
    {{"a", 2}, {"b", 2}}, {{"a", 1}, {"b", 3}}, {{"a", 1}, {"b", 1}, {"c", 1}}};

TEST_CASE("blocking sums, named and unnamed") {
  for (const auto& hosts : kWorlds) {
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            const int n = engine.world().topology().size();
            for (int i = 0; i < 200; ++i) {
              std::vector<float> x(1 + i * 37, engine.world().rank() + 1.0f);
              const absl::Status status = Sum(engine, i % 2 ? "x" : "", &x);
              problems.Expect(status.ok(), status.ToString());
              const float want = n * (n + 1) / 2.0f;
              problems.Expect(x.front() == want && x.back() == want, "wrong sum");
            }
          }) == "");
  }
}

TEST_CASE("asynchronous sums submitted in another order on each rank") {
  for (const auto& hosts : kWorlds) {
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            constexpr int kTensors = 40;
            const int n = engine.world().topology().size();
            unsigned random = engine.world().rank() * 31 + 7;
            for (int step = 0; step < 10; ++step) {
              std::vector<std::vector<float>> x(kTensors);
              std::vector<Request> requests(kTensors);
              std::vector<int> order(kTensors);
              for (int i = 0; i < kTensors; ++i) order[i] = i;
              for (int i = kTensors - 1; i > 0; --i) {
                std::swap(order[i], order[rand_r(&random) % (i + 1)]);
              }
              for (const int i : order) {
                x[i].assign(1 + i * 100, engine.world().rank() + i);
                FillSum(&requests[i], "t" + std::to_string(i), &x[i]);
                problems.Expect(engine.Submit(&requests[i]).ok(), "submit");
              }
              for (int i = 0; i < kTensors; ++i) {
                problems.Expect(engine.Wait(&requests[i]).ok(), "wait");
                const float want = n * (n - 1) / 2.0f + n * i;
                problems.Expect(x[i].back() == want, "wrong sum of t" + std::to_string(i));
              }
            }
          }) == "");
  }
}

TEST_CASE("asynchronous work goes on while no thread waits") {
  CHECK(RunWorld({{"a", 3}}, [](Engine& engine, Problems& problems) {
          std::vector<float> x(1000, 1.0f);
          Request request;
          FillSum(&request, "x", &x);
          problems.Expect(engine.Submit(&request).ok(), "submit");
          const auto end =
              std::chrono::steady_clock::now() + std::chrono::milliseconds(PatientMs(20000));
          while (!request.done.load() && std::chrono::steady_clock::now() < end) {
            std::this_thread::yield();
          }
          problems.Expect(request.done.load(), "never done");
          problems.Expect(engine.Wait(&request).ok() && x[999] == 3.0f, "wrong");
        }) == "");
}

TEST_CASE("several threads of a rank wait at once") {
  CHECK(RunWorld({{"a", 2}}, [](Engine& engine, Problems& problems) {
          std::vector<std::thread> threads;
          for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
              for (int i = 0; i < 50; ++i) {
                std::vector<float> x(100, 1.0f);
                const absl::Status status = Sum(engine, "thread" + std::to_string(t), &x);
                problems.Expect(status.ok() && x[99] == 2.0f, "wrong in thread");
              }
            });
          }
          for (std::thread& thread : threads) thread.join();
        }) == "");
}

TEST_CASE("a name that is pending is refused at once") {
  CHECK(RunWorld({{"a", 2}}, [](Engine& engine, Problems& problems) {
          std::vector<float> x(10, 1.0f), y(10, 1.0f);
          if (engine.world().rank() == 0) {
            Request first, second;
            FillSum(&first, "x", &x);
            FillSum(&second, "x", &y);
            problems.Expect(engine.Submit(&first).ok(), "first");
            problems.Expect(absl::IsAlreadyExists(engine.Submit(&second)), "second");
            problems.Expect(Sum(engine, "meet", &y).ok(), "meet");
            problems.Expect(engine.Wait(&first).ok(), "wait");
          } else {
            problems.Expect(Sum(engine, "meet", &y).ok(), "meet");
            problems.Expect(Sum(engine, "x", &x).ok(), "x");
          }
        }) == "");
}

TEST_CASE("a mismatch is the same error on every rank and the engine lives on") {
  for (const std::vector<HostShape>& hosts :
       {std::vector<HostShape>{{"a", 3}}, {{"a", 2}, {"b", 1}}})
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            std::vector<float> x(engine.world().rank() == 2 ? 11 : 10, 1.0f);
            const absl::Status status = Sum(engine, "x", &x);
            problems.Expect(absl::IsInvalidArgument(status), "no mismatch");
            problems.Expect(status.message().find("rank 2") != std::string::npos &&
                                status.message().find("[11]") != std::string::npos &&
                                status.message().find("[10]") != std::string::npos,
                            std::string(status.message()));
            std::vector<float> y(10, 1.0f);
            problems.Expect(Sum(engine, "x", &y).ok() && y[9] == 3.0f, "after the mismatch");
          }) == "");
}

TEST_CASE("more unnamed calls than there are turns") {
  CHECK(RunWorld({{"a", 2}}, [](Engine& engine, Problems& problems) {
          constexpr int kCalls = 1500;
          std::vector<std::vector<float>> x(kCalls);
          std::vector<Request> requests(kCalls);
          for (int i = 0; i < kCalls; ++i) {
            x[i].assign(i % 3 == 0 ? 2000 : 5, static_cast<float>(i));
            FillSum(&requests[i], "", &x[i]);
            problems.Expect(engine.Submit(&requests[i]).ok(), "submit");
          }
          for (int i = 0; i < kCalls; ++i) {
            problems.Expect(engine.Wait(&requests[i]).ok(), "wait");
            problems.Expect(x[i].back() == 2.0f * i, "wrong sum of call " + std::to_string(i));
          }
        }) == "");
}

TEST_CASE("an abort reaches every pending call with its cause") {
  FakeDaemon daemon({{"a", 2}});
  Problems problems;
  std::vector<std::thread> ranks;
  for (int r = 0; r < 2; ++r) {
    ranks.emplace_back([&, r] {
      auto session = Session::Open(daemon.link(r));
      auto world = EpochWorld::Join(session->get(), {0, 2, nullptr});
      HostPage* page = (*world)->page();
      Engine engine(std::move(*world), EngineConfig());
      std::vector<float> x(10, 1.0f), y(10, 1.0f);
      if (r == 0) {
        Request pending;
        FillSum(&pending, "never", &y);
        problems.Expect(engine.Submit(&pending).ok(), "submit");
        const absl::Status status = Sum(engine, "x", &x);
        problems.Expect(status.message() == "rank 1 was killed", status.ToString());
        problems.Expect(engine.Wait(&pending).message() == "rank 1 was killed", "pending");
        problems.Expect(absl::IsAborted(Sum(engine, "later", &x)), "later");
      } else {
        while (page->activity[0].pending.load() < 2) std::this_thread::yield();
        AbortEpoch(page, "rank 1 was killed", nullptr);
      }
      engine.Shutdown();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(problems.text() == "");
}

TEST_CASE("a rank that shuts down while others wait ends their wait with its name") {
  for (const std::vector<HostShape>& hosts :
       {std::vector<HostShape>{{"a", 2}}, {{"a", 1}, {"b", 1}}})
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            if (engine.world().rank() == 1) return;
            std::vector<float> x(10, 1.0f);
            const absl::Status status = Sum(engine, "x", &x);
            problems.Expect(absl::IsAborted(status) &&
                                status.message().find("rank 1 has left") != std::string::npos,
                            status.ToString());
          }) == "");
}

TEST_CASE("epochs follow one another in one process") {
  for (const std::vector<HostShape>& hosts :
       {std::vector<HostShape>{{"a", 3}}, {{"a", 2}, {"b", 1}}})
    CHECK(RunWorld(
              hosts,
              [](Engine& engine, Problems& problems) {
                std::vector<float> x(10, 1.0f);
                const absl::Status status = Sum(engine, "x", &x);
                problems.Expect(status.ok(), status.ToString());
                problems.Expect(x[0] == engine.world().topology().size(), "wrong sum");
              },
              5) == "");
}

TEST_CASE("an allgather with rows that differ, and an output that does not fit") {
  for (const std::vector<HostShape>& hosts :
       {std::vector<HostShape>{{"a", 3}}, {{"a", 2}, {"b", 1}}})
    CHECK(RunWorld(hosts, [](Engine& engine, Problems& problems) {
            const int rank = engine.world().rank();
            std::vector<int32_t> mine(2 * (rank + 1), rank), all(2 * 6), wrong(2 * 5);
            for (int turn = 0; turn < 3; ++turn) {
              Request request;
              request.name = "g" + std::to_string(turn);
              request.signature.kind = RequestKind::kAllgather;
              request.signature.dtype = HVD_INT32;
              request.signature.ndim = 2;
              request.signature.shape[0] = rank + 1;
              request.signature.shape[1] = 2;
              request.buffers.input = mine.data();
              if (turn == 1) request.buffers.output = all.data(), request.buffers.output_rows = 6;
              if (turn == 2 && rank == 1)
                request.buffers.output = wrong.data(), request.buffers.output_rows = 5;
              const absl::Status status = engine.Run(&request);
              if (turn == 2 && rank == 1) {
                problems.Expect(absl::IsFailedPrecondition(status), "must not fit");
                continue;
              }
              problems.Expect(status.ok(), status.ToString());
              const auto* got =
                  turn == 1 ? all.data() : static_cast<int32_t*>(request.result.owned);
              problems.Expect(got != nullptr && got[0] == 0 && got[2] == 1 && got[11] == 2, "rows");
              const bool shaped = request.result.shape == std::vector<int64_t>{6, 2};
              problems.Expect(turn == 1 || shaped, "shape");
            }
          }) == "");
}

}  // namespace
}  // namespace hvd::rt
