// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/host_way.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "runtime/device/device_memory.h"
#include "runtime/engine/intake.h"
#include "runtime/transport/own_thread.h"

namespace hvd::rt {
namespace {

// How often the thread looks whether the epoch, or the device, has ended under its calls: both tell
// nobody here.
constexpr std::chrono::milliseconds kLook{100};
// For a device that does not finish what it was given.
constexpr std::chrono::seconds kGivesUp{5};

absl::Status CheckTensors(const GpuDevice& device, const StagedPlan& plan) {
  for (const std::vector<StagedTensor>& tensors : plan.tensors) {
    for (const StagedTensor& tensor : tensors) {
      absl::Status checked;
      if (tensor.input_bytes > 0) checked = CheckOnDevice(device, tensor.input, "input");
      if (checked.ok() && tensor.output_bytes > 0 && tensor.output != tensor.input) {
        checked = CheckOnDevice(device, tensor.output, "output");
      }
      if (!checked.ok()) return checked;
    }
  }
  return absl::OkStatus();
}

}  // namespace

HostWay::HostWay(ProcessSets* sets, Gpus* gpus, Arena* arena, void (*free_result)(void*))
    : parts_{sets, gpus, &staging_, &inbox_, &names_, nullptr, free_result}, staging_(arena) {}

absl::Status HostWay::Submit(absl::Span<const std::unique_ptr<Request>> requests,
                             const ProcessSet& set, std::shared_ptr<StagedCall>* submitted) {
  const Request& first = *requests[0];
  const auto device = parts_.gpus->Find(first.buffers.device.id);
  if (!device.ok()) return device.status();
  StagedParts parts = parts_;
  parts.device = *device;
  const Membership membership = set.membership();
  const bool may_launch = set.route->way() != DeviceRoute::Way::kHost;
  StagedPlan plan = PlanStaging(requests, {membership.index, membership.size()});
  if (absl::Status checked = CheckTensors(**device, plan); !checked.ok()) return checked;
  auto call = std::make_shared<StagedCall>(
      parts, StagedCall::Asked{requests, std::move(plan), membership, may_launch});
  const auto number = Enter(call, first);
  if (!number.ok()) return number.status();
  *submitted = call;
  absl::Status started = Start(call.get(), first, set.engine.get());
  if (!started.ok()) Withdraw(*number);
  if (!started.ok()) *submitted = nullptr;
  return started;
}

absl::StatusOr<uint64_t> HostWay::Enter(const std::shared_ptr<StagedCall>& call,
                                        const Request& first) {
  const MutexLock lock(&mutex_);
  if (parts_.sets->is_joining()) {
    const std::string what = first.name.empty()
                                 ? absl::StrCat("unnamed ", KindName(first.signature.kind))
                                 : ShownName(first.name);
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": this rank joins; it submits again when its join has returned"));
  }
  if (ending_) return absl::AbortedError(kHasLeft);
  if (!thread_.joinable()) {
    thread_ = StartThread("hvd-gpu", [this] { Body(); });
  }
  open_[++last_].call = call;
  call->set_number(last_);
  return last_;
}

void HostWay::Withdraw(uint64_t number) {
  const MutexLock lock(&mutex_);
  open_.erase(number);
  changed_.NotifyAll();
}

absl::Status HostWay::Start(StagedCall* call, const Request& first, Engine* engine) {
  const bool named = !IsPair(first.signature.kind) && !first.name.empty();
  if (named && !names_.Take(call->set(), first.name)) return StillPending(first);
  absl::Status status = call->Prepare();
  if (status.ok()) status = call->Announce(engine);
  if (!status.ok()) {
    if (named) names_.Give(call->set(), first.name);
    call->GiveMemory();
  }
  return status;
}

bool HostWay::HasOpen(int32_t set, uint64_t last) const {
  return std::any_of(open_.begin(), open_.end(), [&](const auto& open) {
    return open.first <= last && open.second.call->set() == set && !open.second.failed;
  });
}

uint64_t HostWay::last() {
  const MutexLock lock(&mutex_);
  return last_;
}

void HostWay::Drain(int32_t set, uint64_t last) {
  const MutexLock lock(&mutex_);
  while (HasOpen(set, last)) changed_.Wait(&mutex_);
}

bool HostWay::HasUnsubmitted() const {
  return std::any_of(open_.begin(), open_.end(),
                     [](const auto& open) { return !open.second.submitted; });
}

void HostWay::HandOver() {
  const MutexLock lock(&mutex_);
  inbox_.Wake();
  while (HasUnsubmitted()) changed_.Wait(&mutex_);
}

void HostWay::EndEpoch() {
  std::thread thread;
  {
    const MutexLock lock(&mutex_);
    if (!thread_.joinable()) return;
    ending_ = true;
    give_up_at_ = Clock::now() + kGivesUp;
    thread = std::move(thread_);
  }
  inbox_.Wake();
  thread.join();
  LeaveToDevice();
  staging_.Clear();
  const MutexLock lock(&mutex_);
  ending_ = false;
}

void HostWay::Body() {
  kGpuThread.AssertHeld();
  auto look_at = Clock::time_point::max();
  for (;;) {
    StagedStep* const step = inbox_.Next(look_at);
    if (step != nullptr) {
      StagedCall* const call = step->call;
      const bool frees = step->kind == StagedStep::Kind::kAnswered;
      call->Take(*step);
      AfterStep(call);
      if (frees) TryBlocked();
    } else {
      LookAround();
    }
    // Also while steps come without a pause: those are other calls'.
    const Clock::time_point now = Clock::now();
    if (step != nullptr && now >= look_at) LookAround();
    const MutexLock lock(&mutex_);
    if (ending_ && (open_.empty() || now >= give_up_at_)) return;
    if (open_.empty()) look_at = Clock::time_point::max();
    if (!open_.empty() && (look_at == Clock::time_point::max() || now >= look_at)) {
      look_at = now + kLook;
    }
  }
}

// Frees the call when it is over.
void HostWay::AfterStep(StagedCall* call) {
  if (parts_.sets->is_joining()) call->Hurry();
  const StagedCall::Standing now = call->standing();
  const auto known = std::find(blocked_.begin(), blocked_.end(), call);
  if (now.is_blocked && known == blocked_.end()) blocked_.push_back(call);
  if (!now.is_blocked && known != blocked_.end()) blocked_.erase(known);
  if (now.is_over) call->GiveMemory();
  std::shared_ptr<StagedCall> last;  // freed without the lock
  const MutexLock lock(&mutex_);
  const auto found = open_.find(call->number());
  if (found == open_.end()) return;  // of an epoch that has ended without it
  found->second.submitted = now.has_submitted;
  found->second.failed = now.has_failed;
  if (now.is_over) {
    last = std::move(found->second.call);
    open_.erase(found);
  }
  changed_.NotifyAll();
}

void HostWay::TryBlocked() {
  for (StagedCall* call : std::vector<StagedCall*>(blocked_)) {
    call->SubmitReady();
    AfterStep(call);
  }
}

void HostWay::LookAround() {
  for (const auto& call : OpenCalls()) {
    call->LookAround();
    AfterStep(call.get());
  }
}

std::vector<std::shared_ptr<StagedCall>> HostWay::OpenCalls() const {
  const MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<StagedCall>> calls;
  for (const auto& [number, open] : open_) calls.push_back(open.call);
  return calls;
}

// It may still copy to their memory, and tell that it has: they stay.
void HostWay::LeaveToDevice() {
  const MutexLock lock(&mutex_);
  if (open_.empty()) return;
  fprintf(stderr,
          "hvd: a GPU does not finish %zu calls that have ended; their host memory stays taken\n",
          open_.size());
  static auto* const left = new std::vector<std::shared_ptr<StagedCall>>;
  for (auto& [number, open] : open_) left->push_back(std::move(open.call));
  open_.clear();
}

}  // namespace hvd::rt
