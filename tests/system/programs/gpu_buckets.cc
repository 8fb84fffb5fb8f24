// SPDX-License-Identifier: Apache-2.0
#include "tests/system/programs/gpu_buckets.h"

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/system/programs/gpu_tensor.h"

namespace gpu {
namespace {

const std::vector<int64_t> kCounts = {50, 1100, 7, 40000, 3, 2, 30000, 12};
constexpr int32_t kTensors = 8;
constexpr size_t kLaterStream = 2;  // on which nothing is written

// float32 on GPU 0; sums.
class OnGpuBucket {
 public:
  explicit OnGpuBucket(const char* name, int32_t flags = 0) {
    hvd_options_t reduction = Sum(name);
    reduction.flags = flags;
    hvd_bucket_options_t options = HVD_BUCKET_OPTIONS_INIT;
    options.reduction = &reduction;
    options.chunk_bytes = 4096;
    options.device_type = HVD_CUDA;
    Must(hvd_bucket_create(kCounts.data(), kTensors, &options, &bucket_), "create");
  }
  ~OnGpuBucket() { hvd_bucket_destroy(bucket_); }
  OnGpuBucket(const OnGpuBucket&) = delete;
  OnGpuBucket& operator=(const OnGpuBucket&) = delete;

  hvd_bucket_t* get() const { return bucket_; }
  unsigned char* View(int32_t i) const {
    void* view = nullptr;
    Must(hvd_bucket_view(bucket_, i, &view), "view");
    return static_cast<unsigned char*>(view);
  }
  // By work on one of the streams, which may still be under way when this returns.
  void Write(int32_t i, float number, size_t stream) {
    CudaStreamOf on = Side::Get().stream(stream);
    written_.assign(static_cast<size_t>(kCounts[static_cast<size_t>(i)]), number);
    Upload(written_.data(), View(i), written_.size() * sizeof(float), on);
    Must(hvd_bucket_ready_on(bucket_, i, on), "ready");
  }
  void MustBe(int32_t i, float wanted, size_t stream, const char* what) const {
    std::vector<float> all(static_cast<size_t>(kCounts[static_cast<size_t>(i)]));
    Download(all.data(), View(i), all.size() * sizeof(float), Side::Get().stream(stream));
    for (const float got : all) {
      if (got != wanted) {
        Fail(std::string(what) + ": tensor " + std::to_string(i) + " is " + std::to_string(got));
      }
    }
  }

 private:
  using CudaStreamOf = hvd::rt::CudaStream;
  hvd_bucket_t* bucket_ = nullptr;
  std::vector<float> written_;
};

std::vector<int32_t> OrderOf(int step) {
  std::vector<int32_t> order(kTensors);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.begin() + (step + hvd::rank()) % kTensors, order.end());
  return order;
}

// The tensors become ready in another order on each rank, written by one stream or by several.
void CheckSteps() {
  const auto ranks = static_cast<float>(hvd::size());
  OnGpuBucket bucket("steps");
  for (int step = 0; step < 12; ++step) {
    const size_t streams = step % 2 == 0 ? 1 : 2;
    for (const int32_t i : OrderOf(step)) {
      bucket.Write(i, static_cast<float>(step + i), static_cast<size_t>(i) % streams);
    }
    int32_t done = 0;
    if (step % 3 == 0) Must(hvd_bucket_wait_tensor(bucket.get(), 3, 10000000, &done), "wait for 3");
    if (step % 3 == 0) bucket.MustBe(3, ranks * static_cast<float>(step + 3), 3 % streams, "alone");
    if (step % 4 == 0) {
      Must(hvd_bucket_wait(bucket.get()), "wait");
    } else {
      Must(hvd_bucket_wait_on(bucket.get(), Side::Get().stream(kLaterStream)), "wait on");
    }
    for (int32_t i = 0; i < kTensors; ++i) {
      const size_t seen = step % 4 == 0 ? static_cast<size_t>(i) % streams : kLaterStream;
      bucket.MustBe(i, ranks * static_cast<float>(step + i), seen, "a step");
    }
  }
}

// From the GPU and from the CPU, and of another type.
void CheckPut() {
  const auto ranks = static_cast<float>(hvd::size());
  OnGpuBucket bucket("put", HVD_WAIT_ON_HOST);
  for (int32_t i = 0; i < kTensors; ++i) {
    const auto count = static_cast<size_t>(kCounts[static_cast<size_t>(i)]);
    Tensor device(count);
    device.Set(static_cast<float>(i));
    std::vector<double> host(count, i);
    hvd_tensor_t source = device.value;
    if (i % 2 == 0) {
      source.data = host.data();
      source.dtype = HVD_FLOAT64;
      source.device_type = HVD_CPU;
      source.stream = nullptr;
    }
    Must(hvd_bucket_put(bucket.get(), i, &source), "put");
    Side::Get().Await(static_cast<hvd::rt::CudaStream>(device.value.stream));
  }
  Must(hvd_bucket_wait(bucket.get()), "wait on the host");
  for (int32_t i = 0; i < kTensors; ++i) {
    bucket.MustBe(i, ranks * static_cast<float>(i), kLaterStream, "put");
  }
}

void CheckRefusals() {
  OnGpuBucket bucket("refusals");
  Tensor device(50);
  hvd_tensor_t wrong = device.value;
  wrong.dtype = HVD_INT32;
  MustRefuse(HVD_ERR_INVALID, hvd_bucket_put(bucket.get(), 0, &wrong), "nothing is converted");
  wrong = device.value;
  wrong.device_id = 3;
  MustRefuse(HVD_ERR_INVALID, hvd_bucket_put(bucket.get(), 0, &wrong),
             "source lies on GPU 3; the bucket lies on GPU 0");
  MustRefuse(HVD_ERR_INVALID, hvd_bucket_put(bucket.get(), 1, &device.value), "has 50 elements");
  hvd_bucket_options_t options = HVD_BUCKET_OPTIONS_INIT;
  options.device_type = HVD_CUDA;
  options.device_id = 9;
  hvd_bucket_t* none = nullptr;
  MustRefuse(HVD_ERR_UNSUPPORTED, hvd_bucket_create(kCounts.data(), 1, &options, &none),
             "there is no GPU 9");
  Must(hvd_bucket_create(kCounts.data(), 1, nullptr, &none), "in the CPU's memory");
  MustRefuse(HVD_ERR_INVALID, hvd_bucket_ready_on(none, 0, device.value.stream),
             "give it no stream");
  hvd_bucket_destroy(none);
}

// On a GPU here, and in the CPU's memory there: both are told, and go on.
void CheckPlaces() {
  hvd_options_t reduction = Sum("places");
  hvd_bucket_options_t options = HVD_BUCKET_OPTIONS_INIT;
  options.reduction = &reduction;
  options.device_type = hvd::rank() == 0 ? HVD_CUDA : HVD_CPU;
  hvd_bucket_t* bucket = nullptr;
  Must(hvd_bucket_create(kCounts.data(), 1, &options, &bucket), "create");
  const std::vector<float> ones(static_cast<size_t>(kCounts[0]), 1);
  hvd_tensor_t source = HVD_TENSOR_INIT;
  source.data = const_cast<float*>(ones.data());
  source.shape = kCounts.data();
  source.ndim = 1;
  Must(hvd_bucket_put(bucket, 0, &source), "put");
  MustRefuse(HVD_ERR_MISMATCH, hvd_bucket_wait(bucket), "different devices");
  hvd_bucket_destroy(bucket);
}

// Some give the step up: what they have not written counts as zeros.
void CheckGivenUp() {
  OnGpuBucket bucket("given up");
  bucket.Write(0, 1, 0);
  if (hvd::rank() == 0) {
    for (int32_t i = 1; i < kTensors; ++i) bucket.Write(i, 5, 1);
    Must(hvd_bucket_wait(bucket.get()), "wait beside those who give up");
    bucket.MustBe(3, 5, 1, "the others' zeros");
  } else {
    Must(hvd_bucket_reset(bucket.get()), "reset");
  }
}

}  // namespace

void CheckBuckets() {
  CheckSteps();
  CheckPut();
  CheckRefusals();
  CheckPlaces();
  CheckGivenUp();
  Must(hvd_check(), "check");
}

}  // namespace gpu
