// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/stable_hash.h"
#include "runtime/check/check_tensor.h"

namespace hvd::rt {
namespace {

// Tensor i of an array. (CheckTensor sees to it that the caller's structs have our size.)
const hvd_tensor_t* At(const hvd_tensor_t* tensors, int i) {
  return tensors != nullptr ? tensors + i : nullptr;
}

// The output of tensor i, which for an allreduce may be the input's own memory.
absl::Status CheckPart(const GroupCall& call, const Membership& set, int i, Request* request) {
  Call one;
  one.kind = call.kind;
  one.input = At(call.inputs, i);
  one.output = At(call.outputs, i);
  if (one.output == nullptr && call.kind == RequestKind::kAllreduce) one.output = one.input;
  one.options = call.options;
  absl::Status status = CheckCall(one, set, request);
  if (status.ok()) return status;
  return absl::Status(status.code(), "tensor " + std::to_string(i) +
                                         " of the group: " + std::string(status.message()));
}

// Adds the part of the tensor at `position` to the request of its dtype.
void AddPart(const Request& checked, int position, Request* request) {
  const Signature& one = checked.signature;
  Signature& all = request->signature;
  RequestPart part;
  part.input = checked.buffers.input;
  part.output = checked.buffers.output;
  part.output_rows = checked.buffers.output_rows;
  part.position = position;
  part.stream = checked.buffers.device.stream;
  part.shape.assign(one.shape.begin(), one.shape.begin() + one.ndim);
  request->buffers.parts.push_back(std::move(part));
  const size_t size = one.kind == RequestKind::kAllgather ? one.row_elements() : one.elements();
  const int place = std::min(all.group_count, kMaxDimensions - 1);
  all.shape[place] += static_cast<int64_t>(size);
  all.ndim = place + 1;
  ++all.group_count;
}

// All tensors of the call, whatever their dtype: the ranks agree on the group as a whole.
void MixPart(const Signature& one, StableHash* hash) {
  hash->Add(uint64_t{one.dtype}).Add(static_cast<uint64_t>(one.ndim));
  for (int d = one.kind == RequestKind::kAllgather ? 1 : 0; d < one.ndim; ++d) {
    hash->Add(static_cast<uint64_t>(one.shape[d]));
  }
}

std::unique_ptr<Request> StartRequest(const Request& checked) {
  auto request = std::make_unique<Request>();
  request->signature = checked.signature;
  request->contents = checked.contents;
  request->buffers.source = checked.buffers.source;
  request->buffers.device = checked.buffers.device;
  request->signature.ndim = 0;
  request->signature.shape.fill(0);
  return request;
}

// They run together, so they lie together.
absl::Status CheckPlace(const GroupCall& call, int i) {
  if (SamePlace(call.inputs[0], call.inputs[i])) return absl::OkStatus();
  return absl::InvalidArgumentError("tensor 0 of the group lies " + PlaceOf(call.inputs[0]) +
                                    ", tensor " + std::to_string(i) + " " +
                                    PlaceOf(call.inputs[i]) + "; a group lies in one place");
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Request>>> CheckGroup(const GroupCall& call,
                                                                 const Membership& set) {
  if (call.inputs == nullptr) return absl::InvalidArgumentError("inputs is NULL");
  if (call.count < 1) {
    return absl::InvalidArgumentError("count is " + std::to_string(call.count) +
                                      "; a group has at least one tensor");
  }
  std::map<uint32_t, std::unique_ptr<Request>> by_dtype;
  StableHash hash;
  for (int i = 0; i < call.count; ++i) {
    Request checked;
    absl::Status status = CheckPart(call, set, i, &checked);
    if (status.ok()) status = CheckPlace(call, i);
    if (!status.ok()) return status;
    std::unique_ptr<Request>& request = by_dtype[checked.signature.dtype];
    if (request == nullptr) request = StartRequest(checked);
    AddPart(checked, i, request.get());
    MixPart(checked.signature, &hash);
  }
  if (absl::Status status = CheckGroupMemory(call); !status.ok()) return status;
  std::vector<std::unique_ptr<Request>> requests;
  for (auto& [dtype, request] : by_dtype) {
    request->signature.group_hash = hash.value();
    request->signature.group_types = static_cast<uint8_t>(by_dtype.size());
    requests.push_back(std::move(request));
  }
  if (call.options.name != nullptr) requests[0]->name = call.options.name;
  requests[0]->unnamed = requests[0]->name.empty();
  return requests;
}

}  // namespace hvd::rt
