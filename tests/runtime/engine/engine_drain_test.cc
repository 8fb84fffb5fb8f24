// SPDX-License-Identifier: Apache-2.0
// Waiting for all that a rank has submitted before.
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <thread>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

using test::FillSum;
using test::Problems;
using test::RunWorld;

absl::Status Join(Engine& engine) {
  Request join;
  join.name = "\x03join";
  join.signature.kind = RequestKind::kJoin;
  return engine.Run(&join);
}

TEST_CASE("unnamed calls that wait for their turn count, before a barrier") {
  std::atomic<bool> drains{false};
  CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
          const bool late = engine.world().rank() == 1;
          while (late && !drains.load()) std::this_thread::yield();
          constexpr int kCalls = 3000;
          std::vector<std::vector<float>> data(kCalls, std::vector<float>(2000, 1.0f));
          std::vector<Request> requests(kCalls);
          for (int i = 0; i < kCalls; ++i) {
            FillSum(&requests[i], "", &data[i]);
            problems.Expect(engine.Submit(&requests[i]).ok(), "submit");
          }
          drains.store(true);
          Engine::Earlier(&engine).Await();
          int open = 0, failed = 0;
          for (const Request& request : requests) open += request.done.load() ? 0 : 1;
          problems.Expect(open == 0, std::to_string(open) + " are not done");
          const absl::Status joined = Join(engine);
          problems.Expect(joined.ok(), joined.ToString());
          for (Request& request : requests) failed += engine.Wait(&request).ok() ? 0 : 1;
          problems.Expect(failed == 0, std::to_string(failed) + " have failed");
        }) == "");
}

TEST_CASE("a shutdown on another thread ends it") {
  std::atomic<int> asked{0};
  const auto body = [&](Engine& engine, Problems& problems) {
    if (engine.world().rank() == 1) {
      while (asked.load() == 0) std::this_thread::yield();
      --asked;
      return;
    }
    std::vector<float> x(2000, 1.0f);
    Request never;
    FillSum(&never, "never", &x);
    problems.Expect(engine.Submit(&never).ok(), "submit");
    std::thread draining([&] { Engine::Earlier(&engine).Await(); });
    ++asked;
    engine.Shutdown();
    draining.join();
    problems.Expect(never.done.load(), "not done");
  };
  CHECK(RunWorld({{"a", 2}}, body, 50) == "");
}

}  // namespace
}  // namespace hvd::rt
