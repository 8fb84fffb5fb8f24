// SPDX-License-Identifier: Apache-2.0
// As many tensors pending as there is room for.
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
using test::Sum;

const std::vector<std::vector<HostShape>> kWorlds = {{{"a", 2}}, {{"a", 1}, {"b", 1}}};

constexpr uint32_t kMost = 50;

// No other name goes directly from now on, and has a place on the board for good.
void TakeDirectNumbers(Engine& engine) {
  Direct* const direct = engine.world().direct();
  for (int i = 0; direct != nullptr && direct->numbers().Number("taken " + std::to_string(i)) != 0;
       ++i) {
  }
}

// Tensors that go by the board, one after another; nobody reads what they give.
class Crowd {
 public:
  // As many as may be pending.
  void Fill(Engine& engine, Problems& problems) {
    TakeDirectNumbers(engine);
    for (uint32_t i = 0; i < kMost; ++i) {
      const absl::Status status = engine.Submit(Next());
      problems.Expect(status.ok(), status.ToString());
    }
  }
  // On another rank: the same, so that all come to their end there.
  void Answer(size_t count, Engine& engine, Problems& problems) {
    while (requests_.size() < count) problems.Expect(engine.Run(Next()).ok(), "answer");
  }
  void Wait(Engine& engine, Problems& problems) {
    for (Request& request : requests_) problems.Expect(engine.Wait(&request).ok(), "crowd");
  }
  size_t size() const { return requests_.size(); }

 private:
  Request* Next() {
    Request& request = requests_.emplace_back();
    FillSum(&request, "crowd " + std::to_string(requests_.size()), &input_);
    request.buffers.output = output_.data();
    return &request;
  }

  std::vector<float> input_ = std::vector<float>(2000, 1.0f);
  std::vector<float> output_ = std::vector<float>(2000);
  std::deque<Request> requests_;
};

// Rank 0 fills the room, does `meanwhile`, and waits; rank 1 waits for that, and answers all.
using Meanwhile = std::function<void(Engine&, Problems&)>;
void BeCrowded(Engine& engine, Problems& problems, std::atomic<size_t>* crowded,
               const Meanwhile& meanwhile) {
  Crowd crowd;
  if (engine.world().rank() == 0) {
    crowd.Fill(engine, problems);
    meanwhile(engine, problems);
    crowded->store(crowd.size());
    return crowd.Wait(engine, problems);
  }
  while (crowded->load() == 0) std::this_thread::yield();
  crowd.Answer(crowded->load(), engine, problems);
}

TEST_CASE("what others count on finds its way to the board, full as that may be") {
  std::atomic<size_t> crowded{0};
  std::atomic<bool> is_full{false};
  CHECK(RunWorld({{"a", 2}},
                 [&](Engine& engine, Problems& problems) {
                   std::vector<float> same(10, 1.0f), x(10 + engine.world().rank(), 1.0f);
                   problems.Expect(Sum(engine, "x", &same).ok(), "before");
                   const auto meet = [&] {
                     const absl::Status status = Sum(engine, "x", &x);
                     problems.Expect(absl::IsInvalidArgument(status), status.ToString());
                   };
                   if (engine.world().rank() == 1) {
                     while (!is_full.load()) std::this_thread::yield();
                     meet();
                   }
                   BeCrowded(engine, problems, &crowded, [&](Engine&, Problems&) {
                     is_full.store(true);
                     meet();
                   });
                   problems.Expect(Sum(engine, "x", &same).ok() && same[9] == 4.0f, "afterwards");
                 },
                 {1, kMost}) == "");
}

TEST_CASE("a name that was marked directly once is never refused for want of room") {
  std::atomic<size_t> crowded{0};
  CHECK(RunWorld({{"a", 2}},
                 [&](Engine& engine, Problems& problems) {
                   std::vector<float> x(2000, 1.0f), y(2000, 1.0f);
                   Request first, second;
                   FillSum(&first, "x", &x);
                   problems.Expect(engine.Submit(&first).ok() && engine.Wait(&first).ok(),
                                   "before");
                   FillSum(&second, "x", &y);
                   BeCrowded(engine, problems, &crowded, [&](Engine&, Problems&) {
                     const absl::Status status = engine.Submit(&second);
                     problems.Expect(status.ok(), status.ToString());
                   });
                   if (engine.world().rank() == 1)
                     problems.Expect(engine.Submit(&second).ok(), "x");
                   const bool submitted = second.course.local != nullptr;
                   problems.Expect(submitted && engine.Wait(&second).ok() && y[9] == 2.0f, "x");
                 },
                 {1, kMost}) == "");
}

std::unique_ptr<Request> Asynchronous(const std::string& name, std::vector<float>* data) {
  auto request = std::make_unique<Request>();
  FillSum(request.get(), name, data);
  return request;
}

TEST_CASE("tensors pending in opposite orders all complete, however many") {
  constexpr int kTensors = 20000;
  for (const std::vector<HostShape>& hosts : kWorlds) {
    CAPTURE(hosts.size());
    CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
            std::vector<std::vector<float>> data(kTensors);
            std::vector<std::unique_ptr<Request>> requests;
            for (int i = 0; i < kTensors; ++i) {
              const int t = engine.world().rank() == 0 ? i : kTensors - 1 - i;
              data[t] = {static_cast<float>(t), 1.0f};
              requests.push_back(Asynchronous("tensor " + std::to_string(t), &data[t]));
              const absl::Status status = engine.Submit(requests.back().get());
              if (!status.ok()) return problems.Expect(false, status.ToString());
            }
            for (const auto& request : requests)
              problems.Expect(engine.Wait(request.get()).ok(), "wait");
            for (int t = 0; t < kTensors; ++t) {
              const bool right = data[t][0] == 2.0f * static_cast<float>(t) && data[t][1] == 2.0f;
              problems.Expect(right, "tensor " + std::to_string(t));
            }
          }) == "");
  }
}

TEST_CASE("one tensor too many ends the epoch on all ranks, and nobody waits for ever") {
  for (const std::vector<HostShape>& hosts : kWorlds) {
    CAPTURE(hosts.size());
    CHECK(RunWorld(hosts,
                   [&](Engine& engine, Problems& problems) {
                     // In opposite orders: half of them cannot meet.
                     TakeDirectNumbers(engine);
                     std::vector<float> x(2000, 1.0f);
                     std::deque<std::unique_ptr<Request>> requests;
                     absl::Status status;
                     for (uint32_t i = 0; i < 2 * kMost && status.ok(); ++i) {
                       const uint32_t t = engine.world().rank() == 0 ? i : 2 * kMost - 1 - i;
                       requests.push_back(Asynchronous("tensor " + std::to_string(t), &x));
                       status = engine.Submit(requests.back().get());
                       if (!status.ok()) requests.pop_back();
                     }
                     for (const auto& request : requests) {
                       const absl::Status ended = engine.Wait(request.get());
                       if (!ended.ok()) status = ended;
                     }
                     const std::string text(status.message());
                     problems.Expect(absl::IsAborted(status) &&
                                         text.find("(HVD_MAX_PENDING)") != std::string::npos &&
                                         text.find("more than 50 tensors") != std::string::npos,
                                     status.ToString());
                   },
                   {1, kMost}) == "");
  }
}

}  // namespace
}  // namespace hvd::rt
