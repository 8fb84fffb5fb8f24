// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/message/pipeline.h"

#include <deque>

namespace hvd::rt {
namespace {

// The runs that are on their way, oldest first.
class RunsUnderWay : public BackgroundWork {
 public:
  explicit RunsUnderWay(Waiter* waiter) : waiter_(waiter) {}

  bool Step() override {
    bool moved = false;
    for (const auto& run : runs_) moved |= run != nullptr && run->Step();
    return moved;
  }
  void Add(std::unique_ptr<MessageRun> run) {
    runs_.push_back(std::move(run));
    Step();
  }
  // Waits for the oldest.
  absl::Status FinishFirst() {
    const std::unique_ptr<MessageRun>& first = runs_.front();
    if (first != nullptr) {
      absl::Status waited = waiter_->Until([&] {
        Step();
        return first->finished();
      });
      if (!first->status().ok()) return first->status();
      if (!waited.ok()) return waited;
    }
    runs_.pop_front();
    return absl::OkStatus();
  }

 private:
  Waiter* const waiter_;
  std::deque<std::unique_ptr<MessageRun>> runs_;
};

}  // namespace

Chunks::Chunks(size_t count, size_t most) : count_(count) {
  if (count == 0) return;
  constexpr size_t kGrain = 64;
  const size_t wanted = (count - 1) / std::max(kGrain, most) + 1;
  each_ = ((count - 1) / wanted + 1 + kGrain - 1) / kGrain * kGrain;
  size_ = (count - 1) / each_ + 1;
}

absl::Status RunPipeline(Waiter* waiter, const PipelineWork& work) {
  RunsUnderWay runs(waiter);
  const InBackground stepped(waiter, &runs);
  for (size_t step = 0; step < work.chunks + PipelineWork::kAcross; ++step) {
    if (step < work.chunks) {
      if (work.before) {
        if (absl::Status ready = work.before(step); !ready.ok()) return ready;
      }
      auto run = work.across(step);
      if (!run.ok()) return run.status();
      runs.Add(*std::move(run));
    }
    if (step < PipelineWork::kAcross) continue;
    const size_t chunk = step - PipelineWork::kAcross;
    if (chunk >= work.chunks) continue;
    if (absl::Status crossed = runs.FinishFirst(); !crossed.ok()) return crossed;
    if (work.after) {
      if (absl::Status passed = work.after(chunk); !passed.ok()) return passed;
    }
  }
  return absl::OkStatus();
}

}  // namespace hvd::rt
