// As many tensors pending as there is room for.
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <thread>

#include "tests/runtime/engine/engine_world.h"

namespace hvd {
namespace {

using test::FillSum;
using test::Problems;
using test::RunWorld;
using test::Sum;

const std::vector<std::vector<HostShape>> kWorlds = {{{"a", 2}}, {{"a", 1}, {"b", 1}}};

// Tensors that go by the board, one after another; nobody reads what they give.
class Crowd {
 public:
  // Until one is refused for want of room.
  void Fill(Engine& engine, Problems& problems) {
    absl::Status status;
    while (status.ok()) status = engine.Submit(Next());
    requests_.pop_back();
    problems.Expect(absl::IsResourceExhausted(status) &&
                        status.message().find("tensors are pending at once") != std::string::npos,
                    status.ToString());
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
    request.output = output_.data();
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
  CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
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
        }) == "");
}

TEST_CASE("a name that was marked directly once is never refused for want of room") {
  std::atomic<size_t> crowded{0};
  CHECK(RunWorld({{"a", 2}}, [&](Engine& engine, Problems& problems) {
          std::vector<float> x(2000, 1.0f), y(2000, 1.0f);
          Request first, second;
          FillSum(&first, "x", &x);
          problems.Expect(engine.Submit(&first).ok() && engine.Wait(&first).ok(), "before");
          FillSum(&second, "x", &y);
          BeCrowded(engine, problems, &crowded, [&](Engine&, Problems&) {
            const absl::Status status = engine.Submit(&second);
            problems.Expect(status.ok(), status.ToString());
          });
          if (engine.world().rank() == 1) problems.Expect(engine.Submit(&second).ok(), "x");
          const bool submitted = second.local != nullptr;
          problems.Expect(submitted && engine.Wait(&second).ok() && y[9] == 2.0f, "x");
        }) == "");
}

bool IsRefused(Engine& engine, Request* request) {
  return absl::IsResourceExhausted(engine.Submit(request));
}

TEST_CASE("a call that is refused for want of room was not submitted, and may be again") {
  for (const std::vector<HostShape>& hosts : kWorlds) {
    CAPTURE(hosts.size());
    std::atomic<size_t> crowded{0};
    CHECK(RunWorld(hosts, [&](Engine& engine, Problems& problems) {
            // It may go directly: the crowd takes the last numbers.
            if (Direct* direct = engine.world().direct()) (void)direct->Number("late");
            std::vector<float> x(2000, 1.0f), y(10, 1.0f), z(2000, 1.0f);
            BeCrowded(engine, problems, &crowded, [&](Engine&, Problems&) {
              for (int i = 0; i < 3; ++i) {
                Request unnamed, late;
                FillSum(&unnamed, "", &z);
                FillSum(&late, "late", &x);
                problems.Expect(IsRefused(engine, &unnamed), "an unnamed call");
                problems.Expect(IsRefused(engine, &late), "late");
              }
            });
            problems.Expect(Sum(engine, "late", &x).ok() && x[9] == 2.0f, "late");
            problems.Expect(Sum(engine, "late", &y).ok() && y[9] == 2.0f, "late, directly");
            Request unnamed;
            FillSum(&unnamed, "", &z);
            problems.Expect(engine.Submit(&unnamed).ok(), "unnamed");
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
            while (!engine.Poll(&unnamed) && std::chrono::steady_clock::now() < end) {
              std::this_thread::yield();
            }
            problems.Expect(unnamed.done.load() && unnamed.status.ok() && z[9] == 2.0f, "unnamed");
          }) == "");
  }
}

}  // namespace
}  // namespace hvd
