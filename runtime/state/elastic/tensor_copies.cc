// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/elastic/tensor_copies.h"

#include "runtime/collective/kernels/copy.h"
#include "runtime/device/caller_order.h"
#include "runtime/device/device_memory.h"

namespace hvd::rt {
namespace {

constexpr size_t kStreamed = size_t{256} * 1024;

}  // namespace

absl::Status TensorCopies::OnGpu(
    const hvd_tensor_t& tensor,
    absl::FunctionRef<CudaResult(const GpuDevice&, CudaStream)> ask) const {
  auto device = gpus_.Find(tensor.device_id);
  if (!device.ok()) return device.status();
  const GpuDevice::Scope scope(**device);
  auto* const stream = static_cast<CudaStream>(tensor.stream);
  if (absl::Status lies = CheckOnDevice(**device, tensor.data, "tensor"); !lies.ok()) return lies;
  if (absl::Status free = CheckNotCaptured(**device, stream); !free.ok()) return free;
  auto behind = (*device)->TakeEvent();
  if (!behind.ok()) return behind.status();
  absl::Status status = (*device)->driver().Check(ask(**device, stream), "copying the state");
  if (status.ok()) status = behind->Record(stream);
  return status.ok() ? behind->AwaitHere() : status;
}

absl::Status TensorCopies::CopyOut(const hvd_tensor_t& tensor, const TensorPart& part,
                                   void* to) const {
  if (part.bytes == 0) return absl::OkStatus();
  std::byte* const from = static_cast<std::byte*>(tensor.data) + part.from;
  if (tensor.device_type == HVD_CPU) {
    // Nobody reads a commit soon.
    (part.bytes >= kStreamed ? StreamCopy : CopyBytes)(to, from, part.bytes);
    return absl::OkStatus();
  }
  return OnGpu(tensor, [&](const GpuDevice& device, CudaStream stream) {
    return device.calls().copy_out(to, reinterpret_cast<CudaAddress>(from), part.bytes, stream);
  });
}

absl::Status TensorCopies::CopyIn(const hvd_tensor_t& tensor, const TensorPart& part,
                                  const void* from) const {
  if (part.bytes == 0) return absl::OkStatus();
  std::byte* const to = static_cast<std::byte*>(tensor.data) + part.from;
  if (tensor.device_type == HVD_CPU) {
    CopyBytes(to, from, part.bytes);
    return absl::OkStatus();
  }
  return OnGpu(tensor, [&](const GpuDevice& device, CudaStream stream) {
    return device.calls().copy_in(reinterpret_cast<CudaAddress>(to), from, part.bytes, stream);
  });
}

}  // namespace hvd::rt
