// SPDX-License-Identifier: Apache-2.0
#include "bench/hvd_bench/gradients.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>

#include "bench/hvd_bench/collective.h"
#include "bench/hvd_bench/measure.h"
#include "bench/hvd_bench/resnet50.h"
#include "hvd/hvd.hpp"

namespace bench {
namespace {

constexpr int kWarmUp = 3;

// The gradients, and how they are averaged.
class Gradients {
 public:
  explicit Gradients(const GradientsPlan& plan);
  size_t size() const { return tensors_.size(); }
  // Each rank and step has another order.
  void Shuffle() { std::shuffle(order_.begin(), order_.end(), random_); }
  void Fill(bool alike);
  void Run() { bucket_ ? RunBucket() : RunTensors(); }
  void CheckAll(bool alike) const;
  void CheckEnds() const;

 private:
  struct Tensor {
    std::string name;
    std::unique_ptr<Buffer> data;
  };
  void MakeTensors(const GradientsPlan& plan, const std::vector<int64_t>& counts);
  void MakeViews(const std::vector<int64_t>& counts);
  void RunTensors();
  void RunBucket();
  double Sum(size_t index, bool alike) const {
    return PatternSum(dtype_, size_, alike ? 0 : index);
  }

  const int rank_ = hvd::rank(), size_ = hvd::size();
  const bool on_gpu_;
  Dtype dtype_;
  std::unique_ptr<hvd_bucket_t, void (*)(hvd_bucket_t*)> bucket_{nullptr, hvd_bucket_destroy};
  std::vector<Tensor> tensors_;
  std::vector<size_t> order_;
  std::mt19937_64 random_;
};

Gradients::Gradients(const GradientsPlan& plan)
    : on_gpu_(plan.memory == Memory::kGpu), dtype_(plan.dtype), random_(0x9e3779b9 + rank_) {
  const std::vector<size_t> sizes = Resnet50Gradients();
  const std::vector<int64_t> counts(sizes.begin(), sizes.end());
  plan.views ? MakeViews(counts) : MakeTensors(plan, counts);
  order_.resize(tensors_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
}

void Gradients::MakeTensors(const GradientsPlan& plan, const std::vector<int64_t>& counts) {
  for (const int64_t count : counts) {
    tensors_.push_back({"gradient." + std::to_string(tensors_.size()),
                        std::make_unique<Buffer>(plan.dtype, count, plan.memory)});
  }
}

void Gradients::MakeViews(const std::vector<int64_t>& counts) {
  hvd_options_t reduction = HVD_OPTIONS_INIT;
  reduction.op = HVD_SUM;
  reduction.name = "gradients";
  hvd_bucket_options_t options = HVD_BUCKET_OPTIONS_INIT;
  options.reduction = &reduction;
  options.dtype = dtype_.code;
  hvd_bucket_t* bucket = nullptr;
  ThrowIfError(
      hvd_bucket_create(counts.data(), static_cast<int32_t>(counts.size()), &options, &bucket));
  bucket_.reset(bucket);
  for (size_t i = 0; i < counts.size(); ++i) {
    void* view = nullptr;
    ThrowIfError(hvd_bucket_view(bucket, static_cast<int32_t>(i), &view));
    tensors_.push_back({"", std::make_unique<Buffer>(dtype_, counts[i], view)});
  }
}

void Gradients::Fill(bool alike) {
  for (Tensor& tensor : tensors_) {
    if (alike) {
      tensor.data->SetAll(Pattern(rank_, 0));
      continue;
    }
    tensor.data->SetEach([&](size_t i) { return Pattern(rank_, i); });
  }
}

void Gradients::RunTensors() {
  std::vector<hvd_handle_t> handles(tensors_.size());
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.op = HVD_SUM;
  if (on_gpu_) options.flags = HVD_WAIT_ON_HOST;
  for (const size_t index : order_) {
    const Tensor& tensor = tensors_[index];
    options.name = tensor.name.c_str();
    ThrowIfError(hvd_allreduce_async(tensor.data->tensor(), tensor.data->tensor(), &options,
                                     &handles[index]));
  }
  for (const size_t index : order_) ThrowIfError(hvd_wait(handles[index]));
}

void Gradients::RunBucket() {
  for (const size_t index : order_) {
    ThrowIfError(hvd_bucket_ready(bucket_.get(), static_cast<int32_t>(index)));
  }
  ThrowIfError(hvd_bucket_wait(bucket_.get()));
}

void Gradients::CheckAll(bool alike) const {
  for (const Tensor& tensor : tensors_) {
    for (size_t i = 0; i < tensor.data->count(); ++i) tensor.data->Expect(i, Sum(i, alike));
  }
}

void Gradients::CheckEnds() const {
  for (const Tensor& tensor : tensors_) {
    tensor.data->Expect(0, Sum(0, true));
    tensor.data->Expect(tensor.data->count() - 1, Sum(0, true));
  }
}

double TimeStep(Gradients* gradients) {
  gradients->Fill(true);
  gradients->Shuffle();
  const double took = SlowestRank([gradients] { gradients->Run(); });
  gradients->CheckEnds();
  return took;
}

}  // namespace

GradientsResult MeasureGradients(const GradientsPlan& plan) {
  const std::vector<size_t> counts = Resnet50Gradients();
  const size_t elements = std::accumulate(counts.begin(), counts.end(), size_t{0});
  GradientsResult result;
  result.bytes = elements * plan.dtype.bytes;
  result.tensors = counts.size();
  Gradients gradients(plan);
  const Memory memory = plan.views ? Memory::kArena : plan.memory;
  const auto whole = MakeCollective({"allreduce", plan.dtype, result.bytes, memory});
  gradients.Fill(false);
  gradients.Run();
  gradients.CheckAll(false);
  for (int step = -kWarmUp; step < plan.steps; ++step) {
    const double took = TimeStep(&gradients), at_once = TimeOne(whole.get());
    if (step < 0) continue;
    result.steps_us.push_back(took);
    result.contiguous_us.push_back(at_once);
  }
  gradients.CheckAll(true);
  whole->CheckAll();
  std::sort(result.steps_us.begin(), result.steps_us.end());
  std::sort(result.contiguous_us.begin(), result.contiguous_us.end());
  return result;
}

}  // namespace bench
