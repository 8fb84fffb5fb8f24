// SPDX-License-Identifier: Apache-2.0
// A staged call's course on the thread "hvd-gpu".
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/device/nccl/nccl_call.h"
#include "runtime/device/staged/staged_call.h"
#include "runtime/engine/request/local_name.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd {
namespace {

// For a device to let go of the tensors of a call that has failed.
constexpr std::chrono::milliseconds kLetsGo{500};

// The driver's threads call it, inside a stream.
void TellArrived(void* step) {
  auto* told = static_cast<StagedStep*>(step);
  told->inbox->Push(told);
}

CudaAddress AddressOf(const void* device) { return reinterpret_cast<CudaAddress>(device); }

}  // namespace

void StagedCall::Take(const StagedStep& step) {
  absl::Status status;
  switch (step.kind) {
    case StagedStep::Kind::kBegin:
      if (failed_.ok()) status = Begin();
      begun_ = true;
      break;
    case StagedStep::Kind::kAgreed:
      status = Agreed(step.index);
      break;
    case StagedStep::Kind::kArrived:
      --on_device_;
      stages_[step.index].has_arrived = true;
      break;
    case StagedStep::Kind::kAnswered:
      return Answered(&stages_[step.index]);
    case StagedStep::Kind::kBack:
      --on_device_;
      return TellFinished();
  }
  if (!status.ok()) Lose(status);
  EndFailed();
  SubmitReady();
}

absl::Status StagedCall::Begin() {
  absl::Status status;
  for (size_t i = 0; i < requests_.size() && status.ok(); ++i) {
    const bool begins = heads_.empty() || (!heads_[i].may_launch && !heads_[i].has_begun);
    if (begins) status = BeginByHost(i);
  }
  return status;
}

// The caller's streams first: what they hold is what is copied.
absl::Status StagedCall::BeginByHost(size_t request) {
  if (!heads_.empty()) heads_[request].has_begun = true;
  absl::Status status = has_memory_ ? absl::OkStatus() : TakeMemory();
  if (!status.ok()) return status;
  const GpuDevice::Scope scope(*parts_.device);
  const std::string agreed = heads_.empty() ? "" : AgreedName(*announced_[request]);
  auto made =
      MakeStagedRequests(*requests_[request], plan_.tensors[request],
                         {request, memory_.memory, agreed}, {&StagedCall::GiveHostMemory, this});
  for (auto& staged : made) {
    const bool brings = !staged->in.empty();
    Stage& stage = stages_.emplace_back();
    const size_t index = stages_.size() - 1;
    stage.staged = std::move(staged);
    stage.arrived = {StagedStep::Kind::kArrived, index, this, parts_.inbox};
    stage.answered.step = {StagedStep::Kind::kAnswered, index, this, parts_.inbox};
    stage.staged->request.observer = &stage.answered;
    if (status.ok() && brings && !std::exchange(waited_in_, true)) {
      status = order_->MakeWait(parts_.device->host_stream());
    }
    if (status.ok()) status = CopyIn(&stage);
  }
  return status;
}

// A launched request stands on the device already; one that was only agreed on begins now, if it
// has not.
absl::Status StagedCall::Agreed(size_t request) {
  Head& head = heads_[request];
  const RequestResult& agreed = announced_[request]->result;
  head.is_answered = true;
  head.is_launched = agreed.device_end != nullptr;
  head.is_agreed = agreed.status.ok();
  if (head.is_launched) {
    TakeLaunched(request);
    return EndIfComplete();
  }
  if (!agreed.status.ok()) {
    Fail(agreed.status);
    return absl::OkStatus();
  }
  return failed_.ok() && head.may_launch && !head.has_begun ? BeginByHost(request)
                                                            : absl::OkStatus();
}

void StagedCall::TakeLaunched(size_t request) {
  if (is_done()) return;
  Request& made = *announced_[request];
  Request& asked = *requests_[request];
  if (refused_.ok()) refused_ = made.result.status;
  asked.result.owned = std::exchange(made.result.owned, nullptr);
  asked.result.free_owned = made.result.free_owned;
  asked.result.shape = std::move(made.result.shape);
  asked.result.received_splits = std::move(made.result.received_splits);
  for (size_t i = 0; i < made.buffers.parts.size(); ++i) {
    RequestPart& part = asked.buffers.parts[i];
    part.owned_result = std::exchange(made.buffers.parts[i].owned_result, nullptr);
    part.result_shape = std::move(made.buffers.parts[i].result_shape);
  }
}

absl::Status StagedCall::EndIfComplete() {
  if (!failed_.ok() || is_done()) return absl::OkStatus();
  const auto there = [](const Head& head) { return head.is_launched || head.has_begun; };
  const auto answered = [](const Stage& stage) { return stage.is_answered; };
  const bool complete = std::all_of(heads_.begin(), heads_.end(), there) &&
                        std::all_of(stages_.begin(), stages_.end(), answered);
  return complete ? EndOnDevice() : absl::OkStatus();
}

absl::Status StagedCall::CopyIn(Stage* stage) {
  const GpuDevice& device = *parts_.device;
  for (const StagedCopy& copy : stage->staged->in) {
    absl::Status copied = device.driver().Check(
        device.calls().copy_out(memory_.memory + copy.at, AddressOf(copy.device), copy.bytes,
                                device.host_stream()),
        "cuMemcpyDtoHAsync");
    if (!copied.ok()) return copied;
  }
  stage->has_arrived = stage->staged->in.empty();
  if (stage->has_arrived) return absl::OkStatus();
  absl::Status asked = device.driver().Check(
      device.calls().launch_host(device.host_stream(), &TellArrived, &stage->arrived),
      "cuLaunchHostFunc");
  if (asked.ok()) ++on_device_;
  return asked;
}

void StagedCall::SubmitReady() {
  is_blocked_ = false;
  for (Stage& stage : stages_) {
    if (!failed_.ok()) return;
    const bool agreed = heads_.empty() || heads_[stage.staged->of].is_agreed;
    if (stage.submitted || !stage.has_arrived || (!agreed && !hurries_)) continue;
    if (absl::Status submitted = Submit(&stage); !submitted.ok()) return Fail(submitted);
  }
}

absl::Status StagedCall::Submit(Stage* stage) {
  CallTarget target(*parts_.sets);
  if (absl::Status chosen = target.Choose(set_.id); !chosen.ok()) {
    return absl::AbortedError(kHasLeft);
  }
  absl::Status submitted = target->engine->Submit(&stage->staged->request);
  stage->submitted = submitted.ok();
  is_blocked_ = is_blocked_ || absl::IsAlreadyExists(submitted);
  return absl::IsAlreadyExists(submitted) ? absl::OkStatus() : submitted;
}

void StagedCall::Hurry() {
  hurries_ = true;
  const auto waits = [](const Head& head) { return head.may_launch && !head.has_begun; };
  if (std::any_of(heads_.begin(), heads_.end(), waits)) {
    CallTarget target(*parts_.sets);
    const bool chosen = target.Choose(set_.id).ok();
    const auto way = chosen ? WayOf(*target->engine).CloseForJoin() : SetDecision::Way::kHost;
    engine_has_rest_ = way == SetDecision::Way::kNccl;
    for (size_t i = 0; i < heads_.size() && way == SetDecision::Way::kHost; ++i) {
      if (!waits(heads_[i]) || heads_[i].is_answered) continue;
      if (absl::Status begun = BeginByHost(i); !begun.ok()) return Lose(begun);
    }
  }
  SubmitReady();
}

void StagedCall::Answered(Stage* stage) {
  stage->is_answered = true;
  const absl::Status& status = stage->staged->request.result.status;
  if (!status.ok()) return Fail(status);
  if (!failed_.ok()) return;
  absl::Status copied = CopyBack(stage);
  if (copied.ok()) copied = EndIfComplete();
  if (!copied.ok()) Lose(copied);
}

// A rank that brings nothing has not waited for the caller's streams yet, and they may still use
// what is written now.
absl::Status StagedCall::CopyBack(Stage* stage) {
  const GpuDevice& device = *parts_.device;
  const GpuDevice::Scope scope(device);
  absl::Status status;
  if (!waited_back_) status = order_->MakeWait(device.stream());
  waited_back_ = true;
  for (const StagedCopy& copy : stage->staged->back) {
    if (!status.ok()) return status;
    status = device.driver().Check(
        device.calls().copy_in(AddressOf(copy.device), memory_.memory + copy.at, copy.bytes,
                               device.stream()),
        "cuMemcpyHtoDAsync");
  }
  return status.ok() ? CopyResults(stage) : status;
}

// Results whose size was not known before, and which the caller has not given memory for.
absl::Status StagedCall::CopyResults(Stage* stage) {
  Request& made = stage->staged->request;
  Request& asked = *requests_[stage->staged->of];
  asked.result.received_splits = std::move(made.result.received_splits);
  if (made.buffers.source.give == nullptr) return absl::OkStatus();
  asked.result.free_owned = parts_.free_result;
  if (!made.signature.is_group()) {
    asked.result.shape = made.result.shape;
    return GiveResult(asked, asked.result.shape, 0, &asked.result.owned);
  }
  for (size_t i = 0; i < made.buffers.parts.size(); ++i) {
    RequestPart& part = asked.buffers.parts[i];
    if (part.output != nullptr) continue;
    part.result_shape = made.buffers.parts[i].result_shape;
    absl::Status given = GiveResult(asked, part.result_shape, part.position, &part.owned_result);
    if (!given.ok()) return given;
  }
  return absl::OkStatus();
}

absl::Status StagedCall::GiveResult(const Request& asked, const std::vector<int64_t>& shape,
                                    int position, void** owned) {
  size_t bytes = ElementBytes(asked.signature);
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  void* memory = nullptr;
  if (const ResultSource& source = asked.buffers.source; source.give != nullptr) {
    memory = source.give(source.arg, shape.data(), static_cast<int32_t>(shape.size()),
                         static_cast<int32_t>(asked.signature.dtype), position);
    if (memory == nullptr && bytes > 0) {
      refused_ = absl::ResourceExhaustedError(
          absl::StrCat(KindName(asked.signature.kind), " '", std::string(PlainName(asked.name)),
                       "': options.result_fn gave no memory for ", bytes, " bytes"));
      return absl::OkStatus();
    }
  } else {
    auto given = parts_.gpus->Allocate(parts_.device->index(), bytes);
    if (!given.ok()) {
      refused_ = given.status();
      return absl::OkStatus();
    }
    memory = *owned = *given;
  }
  if (bytes == 0) return absl::OkStatus();
  std::byte* from = nullptr;
  {
    const MutexLock lock(&results_mutex_);
    from = results_[position].memory;
  }
  const GpuDevice& device = *parts_.device;
  return device.driver().Check(
      device.calls().copy_in(AddressOf(memory), from, bytes, device.stream()), "cuMemcpyHtoDAsync");
}

// Behind all copies back, and behind what was launched.
absl::Status StagedCall::EndOnDevice() {
  const GpuDevice& device = *parts_.device;
  const GpuDevice::Scope scope(device);
  for (const auto& announced : announced_) {
    const LaunchedEnd* const end = EndOf(*announced);
    if (end == nullptr) continue;
    if (absl::Status ordered = end->event().MakeWait(device.stream()); !ordered.ok())
      return ordered;
  }
  auto event = parts_.device->TakeEvent();
  if (!event.ok()) return event.status();
  absl::Status recorded = event->Record(device.stream());
  if (!recorded.ok()) return recorded;
  recorded = device.driver().Check(
      device.calls().launch_host(device.stream(), &TellArrived, &back_), "cuLaunchHostFunc");
  if (!recorded.ok()) return recorded;
  ++on_device_;
  done_event_ = *std::move(event);
  BeDone(refused_);
  return absl::OkStatus();
}

void StagedCall::Fail(const absl::Status& why) {
  if (is_done() || !failed_.ok()) return;
  failed_ = why;
  gives_up_at_ = Clock::now() + kLetsGo;
  EndFailed();
}

// A copy that is still to come reads what the caller may free once the call is done. But a stream
// that stands still, perhaps for the same reason, must not keep the news from its caller.
void StagedCall::EndFailed() {
  if (failed_.ok() || is_done()) return;
  const bool idle = begun_ && on_device_ == 0 && (!lost_ || parts_.device->is_idle());
  if (idle || Clock::now() >= gives_up_at_) BeDone(failed_);
}

// This rank cannot do its part, so nobody can go on.
void StagedCall::Lose(const absl::Status& why) {
  if (is_done() || !failed_.ok()) return;
  lost_ = true;
  std::string text = absl::StrCat("GPU ", parts_.device->index(), ": ", why.message());
  CallTarget target(*parts_.sets);
  if (!target.Choose(set_.id).ok()) return Fail(absl::AbortedError(text));
  const int rank = target->ranks[static_cast<size_t>(target->index)];
  text = absl::StrCat("rank ", rank, " cannot go on: ", text);
  Fail(target->engine->world().board().Abort({text.c_str(), rank}));
}

void StagedCall::LookAround() {
  if (is_done()) return;
  if (!failed_.ok()) return EndFailed();
  CallTarget target(*parts_.sets);
  if (!target.Choose(set_.id).ok()) return Fail(absl::AbortedError(kHasLeft));
  absl::Status epoch = target->engine->world().waiter().Check();
  if (!epoch.ok()) return Fail(epoch);
  if (absl::Status fine = parts_.device->Check(); !fine.ok()) Lose(fine);
}

// From here on the caller may free the requests, but for those whose end is to be told.
void StagedCall::BeDone(const absl::Status& status) {
  for (const auto& request : requests_) {
    request->result.status = status;
    if (observed_) told_.push_back(request.get());
  }
  parts_.names->Give(set_.id, name_);
  {
    const MutexLock lock(&mutex_);
    status_ = status;
    for (const auto& request : requests_) request->done.store(true, std::memory_order_release);
    done_.store(true, std::memory_order_release);
    changed_.NotifyAll();
  }
  if (!status.ok()) TellFinished();
}

void StagedCall::TellFinished() {
  {
    const MutexLock lock(&mutex_);
    if (std::exchange(finished_, true)) return;
    changed_.NotifyAll();
  }
  for (Request* request : std::exchange(told_, {})) {
    request->observer->OnDone(request);
  }
}

bool StagedCall::has_submitted() const {
  if (!failed_.ok() || is_done()) return true;
  const auto gone = [this](const Head& head) {
    kGpuThread.AssertHeld();
    return head.has_begun || head.is_launched || engine_has_rest_;
  };
  return begun_ && std::all_of(heads_.begin(), heads_.end(), gone) &&
         std::all_of(stages_.begin(), stages_.end(),
                     [](const Stage& stage) { return stage.submitted; });
}

bool StagedCall::is_over() const {
  const auto headless = [](const Head& head) { return head.is_answered; };
  const auto ended = [](const Stage& stage) { return stage.submitted == stage.is_answered; };
  return is_done() && begun_ && on_device_ == 0 &&
         std::all_of(heads_.begin(), heads_.end(), headless) &&
         std::all_of(stages_.begin(), stages_.end(), ended);
}

void StagedCall::GiveMemory() {
  parts_.staging->Give(std::exchange(memory_, {}));
  const MutexLock lock(&results_mutex_);
  for (const auto& [index, piece] : results_) parts_.staging->Give(piece);
  results_.clear();
}

}  // namespace hvd
