// SPDX-License-Identifier: Apache-2.0
// Engines of whole jobs, each rank a thread of this process: hosts' memory by a fake daemon, the
// network by loopback.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/engine/engine.h"
#include "runtime/transport/loopback/loopback_transport.h"
#include "tests/support/fake_daemon.h"

namespace hvd::rt::test {

// Failures on ranks' threads: Catch's assertions belong to the main thread.
class Problems {
 public:
  void Expect(bool fine, const std::string& what) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!fine) text_ += what + "\n";
  }
  std::string text() const { return text_; }

 private:
  std::mutex mutex_;
  std::string text_;
};

using WorldBody = std::function<void(std::unique_ptr<EpochWorld>, Problems&)>;
using RankBody = std::function<void(Engine&, Problems&)>;

struct WorldOptions {
  WorldOptions(int all_epochs = 1, uint32_t most_pending = JoinOptions().max_pending)
      : epochs(all_epochs), max_pending(most_pending) {}
  int epochs;
  uint32_t max_pending;
};

// Runs `body` as each rank of `hosts`, with what each epoch brings.
inline std::string RunWorlds(const std::vector<HostShape>& hosts, const WorldBody& body,
                             const WorldOptions& options = {}) {
  const int epochs = options.epochs;
  FakeDaemon daemon(hosts);
  const Topology topology(hosts);
  // A network an epoch: copies of one would share its messages, and one epoch read another's.
  std::vector<LoopbackWorld> networks;
  for (int epoch = 0; epoch < epochs; ++epoch) networks.emplace_back(topology.size());
  Problems problems;
  std::vector<std::thread> ranks;
  for (int r = 0; r < topology.size(); ++r) {
    ranks.emplace_back([&, r] {
      auto session = Session::Open(daemon.link(r));
      problems.Expect(session.ok(), session.status().ToString());
      for (int epoch = 0; session.ok() && epoch < epochs; ++epoch) {
        const auto transport_for = [&](const TransportPlace& place) {
          return networks[epoch].TransportFor(place.rank);
        };
        auto world = EpochWorld::Join(
            session->get(),
            {.host_cores = 2, .make_transport = transport_for, .max_pending = options.max_pending});
        problems.Expect(world.ok(), world.status().ToString());
        if (!world.ok()) return;
        body(*std::move(world), problems);
        problems.Expect((*session)->Leave(epoch + 1).ok(), "leave");
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return problems.text();
}

// The same, each with an engine of its own, which shuts down.
inline std::string RunWorld(const std::vector<HostShape>& hosts, const RankBody& body,
                            const WorldOptions& options = {}) {
  const auto with_engine = [&](std::unique_ptr<EpochWorld> world, Problems& problems) {
    Engine engine(std::move(world), EngineConfig());
    body(engine, problems);
    engine.Shutdown();
  };
  return RunWorlds(hosts, with_engine, options);
}

inline void FillSum(Request* request, const std::string& name, std::vector<float>* data) {
  request->name = name;
  request->unnamed = name.empty();
  request->signature.kind = RequestKind::kAllreduce;
  request->signature.dtype = HVD_FLOAT32;
  request->signature.op = HVD_SUM;
  request->signature.ndim = 1;
  request->signature.shape[0] = static_cast<int64_t>(data->size());
  request->buffers.input = data->data();
  request->buffers.output = data->data();
}

inline absl::Status Sum(Engine& engine, const std::string& name, std::vector<float>* data) {
  Request request;
  FillSum(&request, name, data);
  return engine.Run(&request);
}

}  // namespace hvd::rt::test
