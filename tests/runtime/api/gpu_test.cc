// SPDX-License-Identifier: Apache-2.0
// Calls on tensors of a GPU in a job of one rank, over the stand-ins for the driver and NCCL, from
// several threads at once: for what the sanitizers see of it; and what a call by NCCL costs,
// counted.
#include <dlfcn.h>
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "hvd/hvd.h"
#include "runtime/gpu/gpu_device.h"
#include "tests/support/cuda/findings.h"

namespace hvd::rt {
namespace {

// As the system would find it; libhvd looks for its name.
CudaDriver Driver() {
  REQUIRE(dlopen(HVD_STAND_IN_CUDA, RTLD_NOW) != nullptr);
  return CudaDriver::Load().value();
}

// A stream and two floats on GPU 0.
class OnGpu {
 public:
  explicit OnGpu(const CudaDriver* driver) : device_(GpuDevice::Open(driver, 0).value()) {
    const GpuDevice::Scope scope(*device_);
    device_->calls().allocate(&address_, sizeof(shape_));
    tensor.data = reinterpret_cast<void*>(address_);
    tensor.shape = shape_;
    tensor.ndim = 1;
    tensor.device_type = HVD_CUDA;
    tensor.stream = device_->stream();
  }
  ~OnGpu() {
    const GpuDevice::Scope scope(*device_);
    device_->calls().free(address_);
  }
  void Write(float value) { WriteTo(tensor.data, value); }
  void WriteTo(void* memory, float value) {
    const float both[2] = {value, value};
    const GpuDevice::Scope scope(*device_);
    device_->calls().copy_in(reinterpret_cast<CudaAddress>(memory), both, sizeof(both),
                             device_->stream());
  }
  CudaStream stream() const { return device_->stream(); }
  float Read() { return ReadFrom(tensor.data); }
  float ReadFrom(const void* memory) {
    float both[2] = {};
    const GpuDevice::Scope scope(*device_);
    device_->calls().copy_out(both, reinterpret_cast<CudaAddress>(memory), sizeof(both),
                              device_->stream());
    return both[0] == both[1] ? both[0] : -1;
  }

  hvd_tensor_t tensor = HVD_TENSOR_INIT;

 private:
  const std::unique_ptr<GpuDevice> device_;
  const int64_t shape_[1] = {2};
  CudaAddress address_ = 0;
};

// As hvd_init reads them, as long as this lives.
class Way {
 public:
  explicit Way(const char* name) {
    setenv("HVD_NCCL_LIBRARY", HVD_STAND_IN_NCCL, 1);
    setenv("HVD_GPU_OPERATIONS", name, 1);
  }
  ~Way() {
    unsetenv("HVD_NCCL_LIBRARY");
    unsetenv("HVD_GPU_OPERATIONS");
  }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
};

hvd_options_t Doubling(const char* name) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = name;
  options.postscale = 2;
  return options;
}

void CallInTurn(const CudaDriver* driver, int thread, std::vector<std::string>* wrong) {
  OnGpu mine(driver);
  const auto need = [wrong](bool holds, const char* what) {
    if (!holds) wrong->push_back(std::string(what) + ": " + hvd_last_error());
  };
  for (int round = 0; round < 20; ++round) {
    const std::string name = std::to_string(thread) + "." + std::to_string(round % 3);
    hvd_options_t options = Doubling(name.c_str());
    if (round % 4 == 0) options.flags = HVD_WAIT_ON_HOST;
    mine.Write(static_cast<float>(round));
    hvd_handle_t handle = 0;
    need(hvd_allreduce_async(&mine.tensor, &mine.tensor, &options, &handle) == HVD_OK, "submit");
    int32_t done = 0;
    need(hvd_poll(handle, &done) == HVD_OK, "poll");
    need(hvd_wait(handle) == HVD_OK, "wait");
    need(mine.Read() == static_cast<float>(2 * round), "twice");
    hvd_tensor_t result;
    need(hvd_allgather(&mine.tensor, nullptr, nullptr, &result) == HVD_OK, "gather");
    need(result.device_type == HVD_CUDA, "it lies on the GPU");
    need(mine.ReadFrom(result.data) == static_cast<float>(2 * round), "gathered");
    hvd_free_result(&result);
  }
}

TEST_CASE("several threads call on GPU tensors at once, in epoch after epoch") {
  const CudaDriver driver = Driver();
  const Findings findings(HVD_STAND_IN_CUDA);
  const Way way(GENERATE("host", "nccl"));
  for (int epoch = 0; epoch < 3; ++epoch) {
    REQUIRE(hvd_init(nullptr) == HVD_OK);
    std::vector<std::string> wrong[3];
    std::vector<std::thread> threads;
    threads.reserve(std::size(wrong));
    for (int i = 0; i < 3; ++i) threads.emplace_back(CallInTurn, &driver, i, &wrong[i]);
    for (std::thread& thread : threads) thread.join();
    for (const auto& one : wrong) CHECK(one == std::vector<std::string>());
    CHECK(hvd_check() == HVD_OK);
    CHECK(hvd_shutdown() == HVD_OK);
  }
  CHECK(findings.Since() == std::vector<std::string>());
}

TEST_CASE("a shutdown ends what is under way on a GPU, and a join hands it over first") {
  const CudaDriver driver = Driver();
  const Findings findings(HVD_STAND_IN_CUDA);
  const Way way(GENERATE("host", "nccl", "auto"));
  OnGpu mine(&driver);
  REQUIRE(hvd_init(nullptr) == HVD_OK);
  mine.Write(1);
  const hvd_options_t options = Doubling("joined");
  hvd_handle_t handle = 0;
  REQUIRE(hvd_allreduce_async(&mine.tensor, &mine.tensor, &options, &handle) == HVD_OK);
  CHECK(hvd_join(nullptr) == HVD_OK);
  CHECK(hvd_wait(handle) == HVD_OK);
  CHECK(mine.Read() == 2);
  const hvd_options_t last = Doubling("last");
  REQUIRE(hvd_allreduce_async(&mine.tensor, &mine.tensor, &last, &handle) == HVD_OK);
  CHECK(hvd_shutdown() == HVD_OK);
  const hvd_status_t ended = hvd_wait(handle);
  CHECK((ended == HVD_OK || ended == HVD_ERR_ABORTED));
  const float value = mine.Read();
  CHECK((value == 2 || value == 4));
  CHECK(findings.Since() == std::vector<std::string>());
}

// How often the stand-ins have been called so, since this was made.
class Counts {
 public:
  explicit Counts(std::vector<std::string> calls) : calls_(std::move(calls)) {
    void* const cuda = dlopen(HVD_STAND_IN_CUDA, RTLD_NOW);
    REQUIRE(cuda != nullptr);
    count_ = reinterpret_cast<uint64_t (*)(const char*)>(dlsym(cuda, "hvd_stand_in_calls"));
    REQUIRE(count_ != nullptr);
    for (const std::string& call : calls_) before_.push_back(count_(call.c_str()));
  }
  std::vector<uint64_t> Since() const {
    std::vector<uint64_t> counts;
    for (size_t i = 0; i < calls_.size(); ++i) {
      counts.push_back(count_(calls_[i].c_str()) - before_[i]);
    }
    return counts;
  }

 private:
  std::vector<std::string> calls_;
  std::vector<uint64_t> before_;
  uint64_t (*count_)(const char*) = nullptr;
};

TEST_CASE("an allreduce by NCCL is one group, and the host waits for nothing") {
  const CudaDriver driver = Driver();
  const Findings findings(HVD_STAND_IN_CUDA);
  const Way way("nccl");
  OnGpu mine(&driver);
  const auto device = GpuDevice::Open(&driver, 0).value();
  REQUIRE(hvd_init(nullptr) == HVD_OK);
  hvd_options_t options = Doubling("x");
  const auto call = [&](bool with_event) {
    GpuDevice::Event ready;
    if (with_event) {
      const GpuDevice::Scope scope(*device);
      ready = device->TakeEvent().value();
      REQUIRE(ready.Record(mine.stream()).ok());
    }
    options.ready_event = ready.handle();
    hvd_handle_t handle = 0;
    CHECK(hvd_allreduce_async(&mine.tensor, &mine.tensor, &options, &handle) == HVD_OK);
    CHECK(hvd_wait(handle) == HVD_OK);
  };
  mine.Write(1);
  for (int i = 0; i < 3; ++i) call(false);
  CHECK(mine.Read() == 8);
  const Counts work({"cuEventRecord", "cuStreamWaitEvent", "ncclGroupEnd", "ncclAllReduce"});
  const Counts never({"cuEventSynchronize", "cuLaunchHostFunc", "cuMemAlloc_v2", "cuMemHostAlloc",
                      "cuMemHostRegister_v2", "cuEventCreate", "ncclRedOpCreatePreMulSum"});
  const std::vector<uint64_t> nothing(7);
  call(false);  // before it, and behind it
  CHECK(work.Since() == std::vector<uint64_t>{2, 2, 1, 1});
  CHECK(never.Since() == nothing);
  const Counts with_event({"cuEventRecord", "cuStreamWaitEvent", "ncclGroupEnd"});
  call(true);  // the caller's own record is one of these
  CHECK(with_event.Since() == std::vector<uint64_t>{2, 2, 1});
  CHECK(mine.Read() == 32);
  CHECK(hvd_shutdown() == HVD_OK);
  CHECK(findings.Since() == std::vector<std::string>());
}

TEST_CASE("a bucket on a GPU: two threads write it on a stream each, step after step") {
  const CudaDriver driver = Driver();
  const Findings findings(HVD_STAND_IN_CUDA);
  const Way way(GENERATE("host", "nccl"));
  REQUIRE(hvd_init(nullptr) == HVD_OK);
  const hvd_options_t reduction = Doubling("gradients");
  hvd_bucket_options_t options = HVD_BUCKET_OPTIONS_INIT;
  options.reduction = &reduction;
  options.chunk_bytes = 64;
  options.device_type = HVD_CUDA;
  const std::vector<int64_t> counts(8, 2);
  hvd_bucket_t* bucket = nullptr;
  REQUIRE(hvd_bucket_create(counts.data(), 8, &options, &bucket) == HVD_OK);
  OnGpu writers[2] = {OnGpu(&driver), OnGpu(&driver)};
  OnGpu reader(&driver);
  std::vector<void*> views(8);
  for (int i = 0; i < 8; ++i) REQUIRE(hvd_bucket_view(bucket, i, &views[i]) == HVD_OK);
  for (int step = 0; step < 10; ++step) {
    std::vector<std::string> wrong[2];
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, thread] {
        OnGpu& mine = writers[thread];
        for (int i = thread; i < 8; i += 2) {
          mine.WriteTo(views[i], static_cast<float>(10 * step + i));
          if (hvd_bucket_ready_on(bucket, i, mine.stream()) != HVD_OK) {
            wrong[thread].emplace_back(hvd_last_error());
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& one : wrong) REQUIRE(one == std::vector<std::string>());
    REQUIRE(hvd_bucket_wait_on(bucket, reader.stream()) == HVD_OK);
    for (int i = 0; i < 8; ++i) {
      CHECK(reader.ReadFrom(views[i]) == static_cast<float>(2 * (10 * step + i)));
    }
  }
  hvd_bucket_destroy(bucket);
  CHECK(hvd_check() == HVD_OK);
  CHECK(hvd_shutdown() == HVD_OK);
  CHECK(findings.Since() == std::vector<std::string>());
}

TEST_CASE("device memory is given, and taken back once") {
  const CudaDriver driver = Driver();
  const Findings findings(HVD_STAND_IN_CUDA);
  REQUIRE(hvd_init(nullptr) == HVD_OK);
  void* memory = nullptr;
  REQUIRE(hvd_alloc_on(100, HVD_CUDA, 0, &memory) == HVD_OK);
  CHECK(hvd_free(memory) == HVD_OK);
  CHECK(hvd_free(memory) == HVD_ERR_INVALID);
  CHECK(hvd_alloc_on(100, HVD_CUDA, 5, &memory) == HVD_ERR_UNSUPPORTED);
  CHECK(hvd_alloc_on(100, 5, 0, &memory) == HVD_ERR_INVALID);
  CHECK(hvd_shutdown() == HVD_OK);
  CHECK(findings.Since() == std::vector<std::string>());
}

TEST_CASE("a state's tensor on a GPU is committed behind its stream, and restored") {
  const CudaDriver driver = Driver();
  REQUIRE(hvd_init(nullptr) == HVD_OK);
  {
    OnGpu weights(&driver);
    hvd_state_t* state = nullptr;
    REQUIRE(hvd_state_create(&state) == HVD_OK);
    REQUIRE(hvd_state_add(state, "weights", &weights.tensor, HVD_STATE_REPLICATED) == HVD_OK);
    weights.Write(3);
    REQUIRE(hvd_state_commit(state, nullptr) == HVD_OK);
    weights.Write(4);
    REQUIRE(hvd_state_restore(state, nullptr) == HVD_OK);
    CHECK(weights.Read() == 3);
    hvd_tensor_t elsewhere = weights.tensor;
    elsewhere.device_id = 99;
    REQUIRE(hvd_state_add(state, "weights", &elsewhere, HVD_STATE_REPLICATED) == HVD_OK);
    CHECK(hvd_state_commit(state, nullptr) == HVD_ERR_UNSUPPORTED);
    // Nothing of that counts: the commit before is still the newest.
    REQUIRE(hvd_state_add(state, "weights", &weights.tensor, HVD_STATE_REPLICATED) == HVD_OK);
    weights.Write(5);
    REQUIRE(hvd_state_restore(state, nullptr) == HVD_OK);
    CHECK(weights.Read() == 3);
    hvd_state_destroy(state);
  }
  REQUIRE(hvd_shutdown() == HVD_OK);
}

}  // namespace
}  // namespace hvd::rt
