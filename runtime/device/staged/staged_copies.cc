// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staged_copies.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/engine/request/local_name.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd::rt {
namespace {

// The driver's threads call it, inside a stream.
void Push(void* step) {
  auto* told = static_cast<StagedStep*>(step);
  told->inbox->Push(told);
}

CudaAddress AddressOf(const void* device) { return reinterpret_cast<CudaAddress>(device); }

}  // namespace

// The caller's streams first: what they hold is what is copied.
absl::StatusOr<bool> StagedCopies::Fetch(const StagedRequest& staged, StagedStep* arrived) {
  if (staged.in.empty()) return false;
  const GpuDevice& device = *parts_.device;
  const GpuDevice::Scope scope(device);
  if (!std::exchange(waited_in_, true)) {
    absl::Status waits = order_->MakeWait(device.host_stream());
    if (!waits.ok()) return waits;
  }
  for (const StagedCopy& copy : staged.in) {
    absl::Status copied = device.driver().Check(
        device.calls().copy_out(memory_.tensors() + copy.at, AddressOf(copy.device), copy.bytes,
                                device.host_stream()),
        "cuMemcpyDtoHAsync");
    if (!copied.ok()) return copied;
  }
  absl::Status asked = device.driver().Check(
      device.calls().launch_host(device.host_stream(), &Push, arrived), "cuLaunchHostFunc");
  if (!asked.ok()) return asked;
  return true;
}

// A rank that brings nothing has not waited for the caller's streams yet, and they may still use
// what is written now.
absl::Status StagedCopies::Return(StagedRequest* staged, Request* asked) {
  const GpuDevice& device = *parts_.device;
  const GpuDevice::Scope scope(device);
  absl::Status status;
  if (!std::exchange(waited_back_, true)) status = order_->MakeWait(device.stream());
  for (const StagedCopy& copy : staged->back) {
    if (!status.ok()) return status;
    status = CopyBack(copy.device, memory_.tensors() + copy.at, copy.bytes);
  }
  return status.ok() ? ReturnResults(staged, asked) : status;
}

absl::Status StagedCopies::CopyBack(void* to, const std::byte* from, size_t bytes) {
  const GpuDevice& device = *parts_.device;
  return device.driver().Check(device.calls().copy_in(AddressOf(to), from, bytes, device.stream()),
                               "cuMemcpyHtoDAsync");
}

// Results whose size was not known before, and which the caller has not given memory for.
absl::Status StagedCopies::ReturnResults(StagedRequest* staged, Request* asked) {
  Request& made = staged->request;
  asked->result.received_splits = std::move(made.result.received_splits);
  if (made.buffers.source.give == nullptr) return absl::OkStatus();
  asked->result.free_owned = parts_.free_result;
  if (!made.signature.is_group()) {
    asked->result.shape = made.result.shape;
    return ReturnResult({*asked, asked->result.shape, 0, &asked->result.owned});
  }
  for (size_t i = 0; i < made.buffers.parts.size(); ++i) {
    RequestPart& part = asked->buffers.parts[i];
    if (part.output != nullptr) continue;
    part.result_shape = made.buffers.parts[i].result_shape;
    absl::Status given =
        ReturnResult({*asked, part.result_shape, part.position, &part.owned_result});
    if (!given.ok()) return given;
  }
  return absl::OkStatus();
}

absl::Status StagedCopies::ReturnResult(const Result& result) {
  size_t bytes = ElementBytes(result.asked.signature);
  for (const int64_t size : result.shape) bytes *= static_cast<size_t>(size);
  const absl::StatusOr<void*> memory = MemoryFor(result, bytes);
  if (!memory.ok()) refused_ = memory.status();  // this rank's alone: the others go on
  if (!memory.ok() || bytes == 0) return absl::OkStatus();
  return CopyBack(*memory, memory_.ResultAt(result.position), bytes);
}

// The caller's function gives it, or hvd. ResourceExhausted: there is none.
absl::StatusOr<void*> StagedCopies::MemoryFor(const Result& result, size_t bytes) {
  const Signature& signature = result.asked.signature;
  const ResultSource& source = result.asked.buffers.source;
  if (source.give == nullptr) {
    auto given = parts_.gpus->Allocate(parts_.device->index(), bytes);
    if (given.ok()) *result.owned = *given;
    return given;
  }
  void* const memory =
      source.give(source.arg, result.shape.data(), static_cast<int32_t>(result.shape.size()),
                  static_cast<int32_t>(signature.dtype), result.position);
  if (memory != nullptr || bytes == 0) return memory;
  return absl::ResourceExhaustedError(
      absl::StrCat(KindName(signature.kind), " '", std::string(PlainName(result.asked.name)),
                   "': options.result_fn gave no memory for ", bytes, " bytes"));
}

absl::StatusOr<GpuDevice::Event> StagedCopies::End(
    absl::Span<const std::unique_ptr<Request>> announced, StagedStep* back) {
  GpuDevice& device = *parts_.device;
  const GpuDevice::Scope scope(device);
  for (const auto& request : announced) {
    const LaunchedEnd* const end = EndOf(*request);
    if (end == nullptr) continue;
    if (absl::Status ordered = end->event().MakeWait(device.stream()); !ordered.ok()) {
      return ordered;
    }
  }
  auto event = device.TakeEvent();
  if (!event.ok()) return event.status();
  absl::Status recorded = event->Record(device.stream());
  if (!recorded.ok()) return recorded;
  recorded = device.driver().Check(device.calls().launch_host(device.stream(), &Push, back),
                                   "cuLaunchHostFunc");
  if (!recorded.ok()) return recorded;
  return event;
}

}  // namespace hvd::rt
