// SPDX-License-Identifier: Apache-2.0
// Measures a small call on CPU tensors while a GPU's allreduce is under way, beside the same call
// alone: by turns, in one run. Prints a line of JSON a size on rank 0.
// Usage: hvdrun -np 2 beside_gpu_bench [ROUNDS]   The GPU's work must outlast the calls beside it:
// on the tests' stand-in for a driver, delay_us=20000 does; rounds in which it did not are told.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/device/gpu_memory.h"
#include "hvd/hvd.hpp"

namespace {

constexpr int kBlocks = 50, kCalls = 100;  // a round, a block
constexpr size_t kOnGpu = size_t{4} << 20;

void Must(hvd_status_t status) {
  if (status == HVD_OK) return;
  std::fprintf(stderr, "beside_gpu_bench: %s\n", hvd_last_error());
  std::exit(1);
}

double Seconds() {
  using std::chrono::steady_clock;
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

hvd_tensor_t TensorOf(void* data, const int64_t* shape) {
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = data;
  tensor.shape = shape;
  tensor.ndim = 1;
  return tensor;
}

// The GPU's allreduce: under way from Begin, as long as IsUnderWay says.
class OnGpu {
 public:
  OnGpu() : memory_(kOnGpu) {
    tensor_ = TensorOf(memory_.data(), &count_);
    tensor_.device_type = HVD_CUDA;
    tensor_.stream = gpu::Side::Get().stream(1);
  }
  void Begin() {
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.name = "on the GPU";
    options.flags = HVD_WAIT_ON_HOST;
    options.done = [](void* self, hvd_handle_t, hvd_status_t) {
      static_cast<OnGpu*>(self)->there_ = true;
    };
    options.done_arg = this;
    there_ = false;
    Must(hvd_allreduce_async(&tensor_, &tensor_, &options, &handle_));
  }
  bool IsUnderWay() const { return !there_; }
  void End() { Must(hvd_wait(handle_)); }

 private:
  static constexpr int64_t count_ = kOnGpu / sizeof(float);
  gpu::Memory memory_;
  hvd_tensor_t tensor_ = HVD_TENSOR_INIT;
  hvd_handle_t handle_ = 0;
  std::atomic<bool> there_{false};  // the bytes
};

// Microseconds a call, of each block.
std::vector<double> TimeCalls(std::vector<float>* values) {
  const auto count = static_cast<int64_t>(values->size());
  const hvd_tensor_t tensor = TensorOf(values->data(), &count);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = "beside it";
  Must(hvd_allreduce(&tensor, &tensor, &options));  // meets the others: a barrier waits for the GPU
  std::vector<double> blocks;
  for (int block = 0; block < kBlocks; ++block) {
    const double begin = Seconds();
    for (int i = 0; i < kCalls; ++i) Must(hvd_allreduce(&tensor, &tensor, &options));
    blocks.push_back((Seconds() - begin) / kCalls * 1e6);
  }
  return blocks;
}

void Append(const std::vector<double>& more, std::vector<double>* all) {
  all->insert(all->end(), more.begin(), more.end());
}

// Medians of blocks: what the ranks spend once on the GPU's call itself is in one or two of them.
void Measure(size_t bytes, int rounds, OnGpu* on_gpu) {
  std::vector<float> values(bytes / sizeof(float));
  std::vector<double> alone, beside;
  int ended_early = 0;
  TimeCalls(&values);
  for (int round = 0; round < rounds; ++round) {
    Append(TimeCalls(&values), &alone);
    on_gpu->Begin();
    const std::vector<double> timed = TimeCalls(&values);
    if (on_gpu->IsUnderWay()) {
      Append(timed, &beside);
    } else {
      ++ended_early;
    }
    on_gpu->End();
  }
  if (hvd::rank() != 0) return;
  std::printf(
      "{\"bytes\": %zu, \"alone_us\": %.3f, \"beside_us\": %.3f, \"ratio\": %.3f, \"rounds\": %d, "
      "\"ended_early\": %d}\n",
      bytes, Median(alone), Median(beside), Median(beside) / Median(alone), rounds, ended_early);
}

}  // namespace

int main(int argc, char** argv) try {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 50;
  hvd::Session session;
  {
    OnGpu on_gpu;
    for (const size_t bytes : {8, 4096, 65536}) Measure(bytes, rounds, &on_gpu);
  }
  gpu::Side::Close();
  return 0;
} catch (const gpu::Problem& problem) {
  std::fprintf(stderr, "beside_gpu_bench: %s\n", problem.what());
  return 1;
}
