// SPDX-License-Identifier: Apache-2.0
#include "examples/train_digits/sums.h"

#include <map>

#include "hvd/hvd.hpp"

namespace digits {
namespace {

class HostSums : public Sums {
 public:
  void Begin(const std::string& name, std::vector<float>* values) override {
    handles_.push_back(hvd::allreduce_async(*values, hvd::Op::kSum, name));
  }
  void End() override {
    for (hvd::Handle& handle : handles_) handle.wait();
    handles_.clear();
  }

 private:
  std::vector<hvd::Handle> handles_;
};

// Values as a tensor of hvd's on a GPU.
class GpuTensor {
 public:
  GpuTensor(size_t count, const Gpu& gpu) : count_(static_cast<int64_t>(count)) {
    const size_t bytes = count * sizeof(float);
    Check(hvd_alloc_on(bytes, HVD_CUDA, gpu.index(), &value_.data));
    value_.shape = &count_;
    value_.ndim = 1;
    value_.dtype = HVD_FLOAT32;
    value_.device_type = HVD_CUDA;
    value_.device_id = gpu.index();
    value_.stream = gpu.stream();
  }
  ~GpuTensor() { hvd_free(value_.data); }
  GpuTensor(const GpuTensor&) = delete;
  GpuTensor& operator=(const GpuTensor&) = delete;

  // Puts the sum behind what is on the stream.
  hvd::Handle BeginSum(const std::string& name) {
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.name = name.c_str();
    options.op = HVD_SUM;
    hvd_handle_t handle = 0;
    Check(hvd_allreduce_async(&value_, &value_, &options, &handle));
    return hvd::Handle(handle);
  }
  void* data() const { return value_.data; }

 private:
  static void Check(hvd_status_t status) {
    if (status != HVD_OK) throw hvd::Error(status, hvd_last_error());
  }

  int64_t count_;
  hvd_tensor_t value_ = HVD_TENSOR_INIT;
};

// Sums gradients as a program does that makes them on the GPU, but for the copies.
class GpuSums : public Sums {
 public:
  explicit GpuSums(Gpu* gpu) : gpu_(*gpu) {}
  void Begin(const std::string& name, std::vector<float>* values) override {
    std::unique_ptr<GpuTensor>& tensor = tensors_[name];
    if (tensor == nullptr) tensor = std::make_unique<GpuTensor>(values->size(), gpu_);
    gpu_.Upload(values->data(), tensor->data(), values->size() * sizeof(float));
    under_way_.push_back({tensor->BeginSum(name), tensor->data(), values});
  }
  void End() override {
    for (Sum& sum : under_way_) {
      sum.handle.wait();  // what follows on the stream follows the sum
      gpu_.Download(sum.on_gpu, sum.values->data(), sum.values->size() * sizeof(float));
    }
    under_way_.clear();
  }

 private:
  struct Sum {
    hvd::Handle handle;
    const void* on_gpu;
    std::vector<float>* values;
  };
  Gpu& gpu_;
  std::map<std::string, std::unique_ptr<GpuTensor>> tensors_;
  std::vector<Sum> under_way_;
};

}  // namespace

std::unique_ptr<Sums> MakeHostSums() { return std::make_unique<HostSums>(); }
std::unique_ptr<Sums> MakeGpuSums(Gpu* gpu) { return std::make_unique<GpuSums>(gpu); }

}  // namespace digits
