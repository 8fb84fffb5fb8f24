// SPDX-License-Identifier: Apache-2.0
// What a call that ends with its epoch leaves of the caller's memory.
#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt {
namespace {

// Another transport that says when it has been stopped.
class Watched : public Transport {
 public:
  Watched(std::unique_ptr<Transport> inner, std::atomic<bool>* let_go)
      : inner_(std::move(inner)), let_go_(let_go) {}
  absl::StatusOr<std::string> Address() override { return inner_->Address(); }
  absl::Status Connect(const std::vector<std::string>& addresses) override {
    return inner_->Connect(addresses);
  }
  absl::StatusOr<std::unique_ptr<TransportRequest>> Send(int peer, MessageTag tag, const void* data,
                                                         size_t bytes) override {
    return inner_->Send(peer, tag, data, bytes);
  }
  absl::StatusOr<std::unique_ptr<TransportRequest>> Receive(int peer, MessageTag tag, void* data,
                                                            size_t bytes) override {
    return inner_->Receive(peer, tag, data, bytes);
  }
  absl::StatusOr<std::unique_ptr<TransportRequest>> Settle() override { return inner_->Settle(); }
  bool Progress() override {
    if (!stopped()) return inner_->Progress();
    let_go_->store(true);
    return false;
  }
  int EventFd() override { return inner_->EventFd(); }
  bool Arm() override { return inner_->Arm(); }

 private:
  const std::unique_ptr<Transport> inner_;
  std::atomic<bool>* const let_go_;
};

// In a job of two ranks on each of two hosts rank 3 ends the epoch while the others wait for it in
// a sum, of the job or of a process set. All hear of it, over the network too, and each finds its
// transport stopped then.
std::string EndWhileOthersWait(bool in_set) {
  const std::vector<HostShape> hosts = {{"a", 2}, {"b", 2}};
  FakeDaemon daemon(hosts);
  LoopbackWorld network(4);
  std::atomic<bool> let_go[4] = {};
  test::Problems problems;
  std::barrier<> all_is_well(4);
  std::atomic<int> submitted{0};
  const auto run = [&](int r) {
    auto session = Session::Open(daemon.link(r));
    JoinOptions options;
    options.host_cores = 2;
    options.make_transport = [&](const TransportPlace& place) {
      return std::make_unique<Watched>(network.TransportFor(place.rank), &let_go[r]);
    };
    auto joined = EpochWorld::Join(session->get(), options);
    problems.Expect(joined.ok(), joined.status().ToString());
    if (!joined.ok()) return;
    EpochWorld* const world = joined->get();
    Engine job(*std::move(joined), EngineConfig());
    auto set_world = EpochWorld::ForSet(world, {1, {0, 1, 2, 3}, 1});
    problems.Expect(set_world.ok(), set_world.status().ToString());
    if (!set_world.ok()) return;
    Engine set(*std::move(set_world), EngineConfig());
    Engine& engine = in_set ? set : job;
    std::vector<float> data(300000, 1.0f);
    problems.Expect(test::Sum(engine, "x", &data).ok(), "a first sum");
    problems.Expect(!let_go[r], "stopped while all was well");
    all_is_well.arrive_and_wait();
    if (r == 3) {
      while (submitted.load() < 3) std::this_thread::yield();
      AbortEpoch(world->page(), "rank 3 has had enough", world->event_fds());
    } else {
      Request request;
      test::FillSum(&request, "x", &data);
      problems.Expect(engine.Submit(&request).ok(), "submit");
      ++submitted;
      const absl::Status heard = engine.Wait(&request);
      problems.Expect(absl::IsAborted(heard), "not ended: " + heard.ToString());
      problems.Expect(let_go[r],
                      "rank " + std::to_string(r) + " heard too early: " + heard.ToString());
    }
    set.Shutdown();
    job.Shutdown();
  };
  std::vector<std::thread> ranks;
  for (int r = 0; r < 4; ++r) ranks.emplace_back(run, r);
  for (std::thread& rank : ranks) rank.join();
  return problems.text();
}

TEST_CASE("who hears that the epoch has ended has his memory back, and the other hosts know") {
  for (const bool in_set : {false, true}) {
    for (int round = 0; round < 5; ++round) {
      INFO(in_set);
      CHECK(EndWhileOthersWait(in_set) == "");
    }
  }
}

}  // namespace
}  // namespace hvd::rt
