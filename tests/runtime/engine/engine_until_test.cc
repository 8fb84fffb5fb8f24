// SPDX-License-Identifier: Apache-2.0
// Waits with an end.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

using test::FillSum;
using test::Problems;
using test::RunWorld;

Engine::Clock::time_point In(std::chrono::microseconds time) { return Engine::Clock::now() + time; }

bool IsSum(const std::vector<float>& x, int ranks) {
  return x.front() == static_cast<float>(ranks) && x.back() == static_cast<float>(ranks);
}

TEST_CASE("a call that comes back before its end goes on") {
  for (const size_t count : {4, 20000}) {
    std::atomic<bool> comes{false};
    const auto body = [&](Engine& engine, Problems& problems) {
      std::vector<float> x(count, 1.0f);
      Request sum;
      FillSum(&sum, "late", &x);
      bool done = true;
      if (engine.world().rank() == 1) {
        while (!comes.load()) std::this_thread::yield();
        problems.Expect(engine.RunUntil(&sum, In(std::chrono::hours(1)), &done).ok(), "run");
        problems.Expect(done, "came back early");
      } else {
        problems.Expect(engine.RunUntil(&sum, In(std::chrono::milliseconds(5)), &done).ok(), "run");
        problems.Expect(!done, "done before the other has come");
        problems.Expect(!engine.WaitUntil(&sum, In(std::chrono::milliseconds(1))), "done alone");
        comes.store(true);
        problems.Expect(engine.Wait(&sum).ok(), "wait");
      }
      problems.Expect(IsSum(x, 2), "a wrong sum");
    };
    CHECK(RunWorld({{"a", 2}}, body) == "");
    comes = false;
    CHECK(RunWorld({{"a", 1}, {"b", 1}}, body) == "");
  }
}

TEST_CASE("two threads of each rank come back and wait on") {
  CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
          const auto work = [&](const char* name, size_t count) {
            for (int i = 0; i < 300; ++i) {
              std::vector<float> x(count, 1.0f);
              Request sum;
              FillSum(&sum, name, &x);
              bool done = false;
              const auto end = In(std::chrono::microseconds(i % 3 == 0 ? 0 : 50));
              problems.Expect(engine.RunUntil(&sum, end, &done).ok(), "run");
              if (!done) problems.Expect(engine.Wait(&sum).ok(), "wait");
              problems.Expect(IsSum(x, 2), "a wrong sum");
            }
          };
          std::thread beside(work, "small", 3);
          work("large", 3000);
          beside.join();
        }) == "");
}

TEST_CASE("a name that is pending is refused though there is time") {
  std::atomic<bool> refused{false};
  CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
          const bool first_comes = engine.world().rank() == 0;
          while (!first_comes && !refused.load()) std::this_thread::yield();
          std::vector<float> x(4, 1.0f), y(4, 1.0f);
          Request first, second;
          FillSum(&first, "twice", &x);
          FillSum(&second, "twice", &y);
          problems.Expect(engine.Submit(&first).ok(), "submit");
          if (first_comes) {
            bool done = false;
            const absl::Status status = engine.RunUntil(&second, In(std::chrono::hours(1)), &done);
            problems.Expect(absl::IsAlreadyExists(status) && done, status.ToString());
            refused.store(true);
          }
          problems.Expect(engine.Wait(&first).ok(), "wait");
        }) == "");
}

}  // namespace
}  // namespace hvd::rt
