// SPDX-License-Identifier: Apache-2.0
#include "tests/system/programs/differential_call.h"

#include <cstring>

namespace differential {
namespace {

constexpr unsigned char kMark = 0xa5;

}  // namespace

Guarded::Guarded(size_t bytes, const Place& place) : bytes_(bytes), skipped_(place.skipped) {
  const size_t all = kGuard + skipped_ + bytes + kGuard;
  if (place.in_arena) shared_ = hvd::Buffer<unsigned char>(all);
  if (!place.in_arena) own_.resize(all);
  all_ = place.in_arena ? shared_.data() : own_.data();
  std::memset(all_, kMark, all);
}

void Guarded::MoveToGpu(hvd::rt::CudaStream stream) {
  on_gpu_ = gpu::Memory(kGuard + skipped_ + bytes_ + kGuard);
  gpu::Upload(all_, on_gpu_.data(), on_gpu_.bytes(), stream);
}

void Guarded::Retire(hvd::rt::CudaStream stream) {
  retired_ = true;
  if (bytes_ > 0) std::memset(data(), kMark, bytes_);
  if (on_gpu_.data() != nullptr) gpu::Upload(data(), on_gpu(), bytes_, stream);
}

void Guarded::Fetch(hvd::rt::CudaStream stream) {
  if (on_gpu_.data() != nullptr) gpu::Download(all_, on_gpu_.data(), on_gpu_.bytes(), stream);
}

bool Guarded::is_whole() const {
  const size_t begin = kGuard + skipped_, end = begin + bytes_ + kGuard;
  for (size_t i = 0; all_ != nullptr && i < end; ++i) {
    const bool is_tensor = i >= begin && i < begin + bytes_;
    if ((retired_ || !is_tensor) && all_[i] != kMark) return false;
  }
  return true;
}

Call::Call(const Operation& operation, Random* own)
    : operation_(operation), member_(operation.set.IndexOf(hvd::rank())) {
  allocates_ = operation.may_allocate() && own->OneIn(2);
  parts_.resize(operation.tensors.size());
  for (size_t i = 0; i < parts_.size(); ++i) Fill(i, own);
  results_.assign(parts_.size(), HVD_TENSOR_INIT);
  if (operation.kind == Kind::kAlltoall) received_.resize(operation.set.ranks.size());
  options_.name = operation.name.c_str();
  options_.process_set = operation.set.id;
  options_.op = operation.op;
  options_.root = operation.root;
  options_.prescale = operation.prescale;
  options_.postscale = operation.postscale;
  options_.compression = operation.compression;
  options_.flags = operation.flags;
  if (operation.on_gpu) MoveToGpu(own);
}

// Written on the stream that the call is told of, or on another behind whose event it begins.
void Call::MoveToGpu(Random* own) {
  gpu::Side& side = gpu::Side::Get();
  stream_ = side.stream(static_cast<size_t>(own->Below(gpu::Side::kStreams)));
  hvd::rt::CudaStream written = stream_;
  if (own->OneIn(3)) written = side.stream(static_cast<size_t>(own->Below(gpu::Side::kStreams)));
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.input.MoveToGpu(written);
    if (part.output.has_room()) part.output.MoveToGpu(written);
    inputs_[i].data = part.input.on_gpu();
    outputs_[i].data = part.output.has_room() ? part.output.on_gpu() : part.input.on_gpu();
    inputs_[i].device_type = outputs_[i].device_type = HVD_CUDA;
    inputs_[i].stream = outputs_[i].stream = stream_;
  }
  if (own->OneIn(3)) options_.flags |= HVD_WAIT_ON_HOST;
  if (written == stream_ && own->OneIn(2)) return;
  const hvd::rt::GpuDevice::Scope scope(side.device());
  auto event = side.device().TakeEvent();
  if (!event.ok() || !event->Record(written).ok()) Fail("an event");
  ready_ = *std::move(event);
  options_.ready_event = ready_.handle();
}

void Call::Fill(size_t tensor, Random* own) {
  const Tensor& whole = operation_.tensors[tensor];
  Part& part = parts_[tensor];
  const auto bytes = [&](const int64_t* shape) {
    return static_cast<size_t>(shape[0] * shape[1]) * whole.dtype.bytes;
  };
  // Aligned to a cache line as often as not.
  const auto place = [&] {
    const int64_t skipped = own->OneIn(2) ? 0 : own->Below(16);
    return Guarded::Place{own->OneIn(2), static_cast<size_t>(skipped) * whole.dtype.bytes};
  };
  part.input_shape[0] = whole.rows[member_];
  part.output_shape[0] = operation_.OutputRows(tensor, member_);
  part.input_shape[1] = part.output_shape[1] = whole.columns;
  part.input = Guarded(bytes(part.input_shape), place());
  part.in_place = !operation_.may_allocate() && own->OneIn(2);
  if (!part.in_place && !allocates_) part.output = Guarded(bytes(part.output_shape), place());
  for (size_t i = 0; i * whole.dtype.bytes < bytes(part.input_shape); ++i) {
    bench::Store(whole.dtype, InputValue(operation_, tensor, hvd::rank(), i),
                 part.input.data() + i * whole.dtype.bytes);
  }
  hvd_tensor_t one = HVD_TENSOR_INIT;
  one.data = part.input.data();
  one.shape = part.input_shape;
  one.ndim = 2;
  one.dtype = whole.dtype.code;
  inputs_.push_back(one);
  one.shape = part.output_shape;
  if (part.output.has_room()) one.data = part.output.data();
  outputs_.push_back(one);
}

const int64_t* Call::splits() const {
  return operation_.splits.empty() ? nullptr : operation_.splits[member_].data();
}

void Call::Run() {
  const auto count = static_cast<int32_t>(parts_.size());
  const hvd_tensor_t* in = inputs_.data();
  switch (operation_.kind) {
    case Kind::kAllreduce:
      Must(hvd_allreduce(in, outputs(), &options_));
      break;
    case Kind::kBroadcast:
      Must(hvd_broadcast(in, outputs(), &options_));
      break;
    case Kind::kAllgather:
      Must(hvd_allgather(in, outputs(), &options_, results()));
      break;
    case Kind::kReduceScatter:
      Must(hvd_reducescatter(in, outputs(), &options_, results()));
      break;
    case Kind::kAlltoall:
      Must(hvd_alltoall(in, splits(), operation_.set.size(), outputs(), &options_, results(),
                        received_.data()));
      break;
    case Kind::kGroupedAllreduce:
      Must(hvd_grouped_allreduce(in, outputs(), count, &options_));
      break;
    case Kind::kGroupedAllgather:
      Must(hvd_grouped_allgather(in, outputs(), count, &options_, results()));
      break;
    case Kind::kGroupedReduceScatter:
      Must(hvd_grouped_reducescatter(in, outputs(), count, &options_, results()));
      break;
  }
  CheckAll();
}

void Call::Submit() {
  const auto count = static_cast<int32_t>(parts_.size());
  const hvd_tensor_t* in = inputs_.data();
  switch (operation_.kind) {
    case Kind::kAllreduce:
      return Must(hvd_allreduce_async(in, outputs(), &options_, &handle_));
    case Kind::kBroadcast:
      return Must(hvd_broadcast_async(in, outputs(), &options_, &handle_));
    case Kind::kAllgather:
      return Must(hvd_allgather_async(in, outputs(), &options_, &handle_));
    case Kind::kReduceScatter:
      return Must(hvd_reducescatter_async(in, outputs(), &options_, &handle_));
    case Kind::kAlltoall:
      return Must(
          hvd_alltoall_async(in, splits(), operation_.set.size(), outputs(), &options_, &handle_));
    case Kind::kGroupedAllreduce:
      return Must(hvd_grouped_allreduce_async(in, outputs(), count, &options_, &handle_));
    case Kind::kGroupedAllgather:
      return Must(hvd_grouped_allgather_async(in, outputs(), count, &options_, &handle_));
    case Kind::kGroupedReduceScatter:
      return Must(hvd_grouped_reducescatter_async(in, outputs(), count, &options_, &handle_));
  }
}

void Call::Poll() {
  int32_t done = 0;
  Must(hvd_poll(handle_, &done));
}

void Call::Wait() {
  const auto count = static_cast<int32_t>(parts_.size());
  if (operation_.kind == Kind::kAlltoall) {
    Must(hvd_wait_alltoall(handle_, results(), received_.data()));
  } else if (!allocates_) {
    Must(hvd_wait(handle_));
  } else {
    Must(operation_.is_group() ? hvd_wait_results(handle_, results(), count)
                               : hvd_wait_result(handle_, results()));
  }
  CheckAll();
}

void Call::Check(size_t tensor, const unsigned char* at) const {
  const Tensor& whole = operation_.tensors[tensor];
  const Part& part = parts_[tensor];
  const auto count = static_cast<size_t>(part.output_shape[0] * part.output_shape[1]);
  for (size_t i = 0; i < count; ++i) {
    const double got = bench::Load(whole.dtype, at + i * whole.dtype.bytes);
    const Wanted wanted = OutputValue(operation_, tensor, member_, i);
    if (std::abs(got - wanted.value) <= wanted.tolerance) continue;
    Fail(Describe(operation_) + ": element " + std::to_string(i) + " of tensor " +
         std::to_string(tensor) + " is " + std::to_string(got) + " instead of " +
         std::to_string(wanted.value));
  }
}

// The results are taken away at once, and the memory marked: whoever still reads or writes there is
// found out by somebody.
void Call::CheckAll() {
  std::vector<std::vector<unsigned char>> taken;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto* at = static_cast<unsigned char*>(allocates_ ? results_[i].data : outputs_[i].data);
    const int64_t* shape = parts_[i].output_shape;
    const size_t bytes =
        static_cast<size_t>(shape[0] * shape[1]) * operation_.tensors[i].dtype.bytes;
    if (operation_.on_gpu) {
      gpu::Download(taken.emplace_back(bytes).data(), at, bytes, stream_);
    } else {
      taken.emplace_back(at, at + bytes);
    }
    parts_[i].input.Retire(stream_);
    if (parts_[i].output.has_room()) parts_[i].output.Retire(stream_);
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (allocates_ && results_[i].shape[0] != parts_[i].output_shape[0]) Fail("rows of a result");
    Check(i, taken[i].data());
    hvd_free_result(&results_[i]);
  }
  for (size_t from = 0; from < received_.size(); ++from) {
    if (received_[from] != operation_.splits[from][member_]) Fail("received splits");
  }
}

void Call::Finish() {
  for (Part& part : parts_) {
    part.input.Fetch(stream_);
    part.output.Fetch(stream_);
    if (part.input.is_whole() && part.output.is_whole()) continue;
    Fail(Describe(operation_) + ": something was written beside a tensor, or after the call");
  }
}

}  // namespace differential
