// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staged_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/device/nccl/nccl_rules.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd {
namespace {

// A request of the call as the ranks agree on it; where its tensors lie only for those who launch
// it.
std::unique_ptr<Request> Announcement(const Request& asked, bool may_launch) {
  auto made = std::make_unique<Request>();
  made->name = asked.name;
  made->unnamed = asked.unnamed;
  made->signature = asked.signature;
  made->root_index = asked.root_index;
  if (may_launch) made->buffers = asked.buffers;
  return made;
}

}  // namespace

StagedCall::StagedCall(const StagedParts& parts, const Asked& asked)
    : parts_(parts),
      requests_(asked.requests),
      set_({asked.set.id, {}, asked.set.index}),
      name_(asked.requests[0]->name),
      on_host_(asked.requests[0]->buffers.device.waits_on_host),
      plan_(PlanStaging(asked.requests, {asked.set.index, asked.set.size()})),
      order_(std::make_shared<CallerOrder>(parts.device)),
      begin_{StagedStep::Kind::kBegin, 0, this, parts.inbox},
      back_{StagedStep::Kind::kBack, 0, this, parts.inbox} {
  for (const auto& request : asked.requests) {
    if (IsPair(request->signature.kind)) continue;
    Head& head = heads_.emplace_back();
    head.agreed.step = {StagedStep::Kind::kAgreed, heads_.size() - 1, this, parts.inbox};
    head.may_launch = asked.may_launch && GoesByNccl(request->signature);
    request->buffers.device.order = order_;
    announced_.push_back(Announcement(*request, head.may_launch));
    announced_.back()->observer = &head.agreed;
  }
}

StagedCall::~StagedCall() {
  if (!done_event_.valid()) return;
  const GpuDevice::Scope scope(*parts_.device);
  done_event_ = {};
}

absl::Status StagedCall::Prepare() {
  const GpuDevice::Scope scope(*parts_.device);
  if (absl::Status noted = order_->Note(requests_); !noted.ok()) return noted;
  const bool all_may_launch =
      !heads_.empty() &&
      std::all_of(heads_.begin(), heads_.end(), [](const Head& head) { return head.may_launch; });
  return all_may_launch ? absl::OkStatus() : TakeMemory();
}

absl::Status StagedCall::TakeMemory() {
  auto memory = parts_.staging->Take(plan_.bytes, parts_.device);
  if (!memory.ok()) return memory.status();
  memory_ = *memory;
  has_memory_ = true;
  return absl::OkStatus();
}

absl::Status StagedCall::Announce(Engine* engine) {
  observed_ = requests_[0]->observer != nullptr;
  if (announced_.empty()) return absl::OkStatus();
  return announced_.size() == 1 ? engine->Submit(announced_[0].get())
                                : engine->SubmitGroup(announced_);
}

bool StagedCall::WaitUntil(Clock::time_point end) {
  if (is_done()) return true;
  const MutexLock lock(&mutex_);
  while (!is_done()) {
    if (end == Clock::time_point::max()) {
      changed_.Wait(&mutex_);
    } else if (!changed_.WaitUntil(&mutex_, end)) {
      return is_done();
    }
  }
  return true;
}

absl::Status StagedCall::Wait() {
  (void)WaitUntil(Clock::time_point::max());
  {
    const MutexLock lock(&mutex_);
    while (on_host_ && !finished_) changed_.Wait(&mutex_);
    if (!status_.ok()) return status_;
  }
  for (void* stream : order_->streams()) {
    if (absl::Status ordered = WaitOn(stream); !ordered.ok()) return ordered;
  }
  return absl::OkStatus();
}

absl::Status StagedCall::WaitOn(void* stream) {
  (void)WaitUntil(Clock::time_point::max());
  {
    const MutexLock lock(&mutex_);
    if (!status_.ok() || !done_event_.valid()) return status_;
  }
  const GpuDevice::Scope scope(*parts_.device);
  return done_event_.MakeWait(static_cast<CudaStream>(stream));
}

// The executor calls it, while other ranks wait.
void* StagedCall::GiveHostMemory(void* call, const int64_t* shape, int32_t ndim, int32_t dtype,
                                 int32_t index) {
  size_t bytes = DtypeBytes(static_cast<hvd_dtype_t>(dtype));
  for (int32_t d = 0; d < ndim; ++d) bytes *= static_cast<size_t>(shape[d]);
  return static_cast<StagedCall*>(call)->HostMemoryFor(index, bytes);
}

void* StagedCall::HostMemoryFor(int32_t index, size_t bytes) {
  const auto taken = parts_.staging->Take(bytes, parts_.device);
  if (!taken.ok()) return nullptr;
  const MutexLock lock(&results_mutex_);
  results_[index] = *taken;
  return taken->memory;
}

}  // namespace hvd
