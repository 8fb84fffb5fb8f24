// SPDX-License-Identifier: Apache-2.0
// The stand-in for NCCL as hvd meets it: ranks are threads here, each with its communicator and its
// stream.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/gpu/nccl_library.h"
#include "tests/support/cuda/enqueue.h"
#include "tests/support/cuda/findings.h"

namespace hvd::rt {
namespace {

class World {
 public:
  explicit World(int ranks)
      : driver_(*CudaDriver::Load(HVD_STAND_IN_CUDA)),
        nccl_(*NcclLibrary::Load(Places())),
        ranks_(ranks) {
    REQUIRE(nccl_.calls().make_id(&id_) == kNcclSuccess);
  }

  struct Rank {
    int number;
    const CudaFunctions& cuda;
    const NcclFunctions& nccl;
    NcclCommunicator& communicator;  // null: `body` has ended it
    CudaStream stream;

    CudaAddress Make(const std::vector<float>& values) const {
      CudaAddress address = 0;
      cuda.allocate(&address, values.size() * sizeof(float));
      cuda.copy_in(address, values.data(), values.size() * sizeof(float), stream);
      return address;
    }
    // And gives the memory back.
    std::vector<float> Take(CudaAddress address, size_t count) const {
      std::vector<float> values(count);
      cuda.copy_out(values.data(), address, count * sizeof(float), stream);
      cuda.free(address);
      return values;
    }
  };
  // `body` on all ranks at once.
  void Run(const std::function<void(const Rank&)>& body) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      threads.emplace_back([this, rank, &body] { RunOne(rank, body); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  static NcclPlaces Places() {
    NcclPlaces places;
    places.named = HVD_STAND_IN_NCCL;
    return places;
  }
  void RunOne(int number, const std::function<void(const Rank&)>& body) {
    const CudaFunctions& cuda = driver_.calls();
    CudaContext context = nullptr;
    cuda.retain_context(&context, 0);
    cuda.push_context(context);
    CudaStream stream = nullptr;
    cuda.create_stream(&stream, kCudaStreamNonBlocking, 0);
    NcclConfig config;
    NcclCommunicator communicator = nullptr;
    nccl_.calls().init_rank(&communicator, ranks_, id_, number, &config);
    body({number, cuda, nccl_.calls(), communicator, stream});
    if (communicator != nullptr) nccl_.calls().destroy(communicator);
    cuda.destroy_stream(stream);
    cuda.pop_context(&context);
  }

  CudaDriver driver_;
  NcclLibrary nccl_;
  const int ranks_;
  NcclId id_ = {};
};

const void* At(CudaAddress address) { return reinterpret_cast<const void*>(address); }
void* To(CudaAddress address) { return reinterpret_cast<void*>(address); }

TEST_CASE("sums, averages and scaled sums over three ranks, in pieces and in place") {
  World world(3);
  const size_t count = 40000;  // more than a piece
  std::vector<std::vector<float>> sums(3), means(3), scaled(3);
  world.Run([&](const World::Rank& rank) {
    const std::vector<float> mine(count, static_cast<float>(rank.number + 1));
    const auto run = [&](NcclOp op) {
      const CudaAddress memory = rank.Make(mine);
      rank.nccl.all_reduce(At(memory), To(memory), count, kNcclFloat32, op, rank.communicator,
                           rank.stream);
      return rank.Take(memory, count);
    };
    sums[rank.number] = run(kNcclSum);
    means[rank.number] = run(kNcclAvg);
    float half = 0.5f;
    NcclOp op = kNcclSum;
    rank.nccl.make_scaled_sum(&op, &half, kNcclFloat32, kNcclScalarOnHost, rank.communicator);
    scaled[rank.number] = run(op);
    rank.nccl.destroy_op(op, rank.communicator);
  });
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(sums[rank] == std::vector<float>(count, 6));
    CHECK(means[rank] == std::vector<float>(count, 2));
    CHECK(scaled[rank] == std::vector<float>(count, 3));
  }
}

TEST_CASE("gathers, scatters, broadcasts and reduces") {
  World world(2);
  std::vector<std::vector<float>> gathered(2), scattered(2), sent(2), reduced(2);
  world.Run([&](const World::Rank& rank) {
    const auto own = static_cast<float>(rank.number);
    const CudaAddress one = rank.Make({own, own + 10}), four = rank.Make({own, 1, 2, 3});
    const CudaAddress all = rank.Make({0, 0, 0, 0}), part = rank.Make({0, 0});
    rank.nccl.all_gather(At(one), To(all), 2, kNcclFloat32, rank.communicator, rank.stream);
    gathered[rank.number] = rank.Take(all, 4);
    rank.nccl.reduce_scatter(At(four), To(part), 2, kNcclFloat32, kNcclSum, rank.communicator,
                             rank.stream);
    scattered[rank.number] = rank.Take(part, 2);
    rank.nccl.reduce(At(four), To(four), 4, kNcclFloat32, kNcclMax, 1, rank.communicator,
                     rank.stream);
    reduced[rank.number] = rank.Take(four, 4);
    rank.nccl.broadcast(At(one), To(one), 2, kNcclFloat32, 1, rank.communicator, rank.stream);
    sent[rank.number] = rank.Take(one, 2);
  });
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(gathered[rank] == std::vector<float>{0, 10, 1, 11});
    CHECK(sent[rank] == std::vector<float>{1, 11});
  }
  CHECK(scattered[0] == std::vector<float>{1, 2});
  CHECK(scattered[1] == std::vector<float>{4, 6});
  CHECK(reduced[1] == std::vector<float>{1, 1, 2, 3});
}

TEST_CASE("sends and receives of a group wait for nobody's order") {
  World world(2);
  const size_t count = 200000;  // beyond what waits between two ranks
  std::vector<std::vector<float>> got(2);
  world.Run([&](const World::Rank& rank) {
    const int other = 1 - rank.number;
    const CudaAddress from = rank.Make(std::vector<float>(count, static_cast<float>(rank.number)));
    const CudaAddress to = rank.Make(std::vector<float>(count, 9));
    rank.nccl.group_start();
    rank.nccl.receive(To(to), count, kNcclFloat32, other, rank.communicator, rank.stream);
    rank.nccl.send(At(from), count, kNcclFloat32, other, rank.communicator, rank.stream);
    rank.nccl.group_end();
    got[rank.number] = rank.Take(to, count);
    rank.Take(from, count);
  });
  for (const int rank : {0, 1}) {
    CHECK(got[rank] == std::vector<float>(count, static_cast<float>(1 - rank)));
  }
}

TEST_CASE("an abort ends what waits for a rank that never comes") {
  World world(2);
  bool ended = false;
  world.Run([&](const World::Rank& rank) {
    if (rank.number == 1) return;
    const CudaAddress memory = rank.Make({1});
    rank.nccl.all_reduce(At(memory), To(memory), 1, kNcclFloat32, kNcclSum, rank.communicator,
                         rank.stream);
    CHECK(rank.cuda.query_stream(rank.stream) == kCudaNotReady);
    rank.nccl.abort(std::exchange(rank.communicator, nullptr));
    rank.Take(memory, 1);
    ended = true;
  });
  CHECK(ended);
}

TEST_CASE("a communicator that has ended, and an id that has had its own, are found") {
  World world(1);
  const Findings findings(HVD_STAND_IN_CUDA);
  world.Run([&](const World::Rank& rank) {
    const CudaAddress memory = rank.Make({1});
    const NcclCommunicator stale = std::exchange(rank.communicator, nullptr);
    CHECK(rank.nccl.destroy(stale) == kNcclSuccess);
    CHECK(rank.nccl.all_reduce(At(memory), To(memory), 1, kNcclFloat32, kNcclSum, stale,
                               rank.stream) == kNcclInvalidArgument);
    NcclResult state = kNcclSuccess;
    CHECK(rank.nccl.async_error(stale, &state) == kNcclInvalidArgument);
    CHECK(rank.nccl.abort(stale) == kNcclInvalidArgument);
    rank.Take(memory, 1);
  });
  world.Run([](const World::Rank&) {});
  const std::vector<std::string> found = findings.Since();
  REQUIRE(found.size() == 4);
  CHECK(found[0] == "ncclAllReduce is given no communicator, or one that has ended");
  CHECK(found[2] == "ncclCommAbort is given no communicator, or one that has ended");
  CHECK(found[3] == "a rank makes a second communicator of one id");
}

}  // namespace
}  // namespace hvd::rt
