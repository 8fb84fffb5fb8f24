// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/staged/staged_plan.h"

#include <algorithm>
#include <string>

#include "runtime/engine/request/tensor_bytes.h"

namespace hvd::rt {
namespace {

constexpr size_t kLine = 64;

size_t Lines(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

size_t ElementsOf(absl::Span<const int64_t> shape, size_t from) {
  size_t count = 1;
  for (size_t d = from; d < shape.size(); ++d) count *= static_cast<size_t>(shape[d]);
  return count;
}

// A tensor as the caller has it.
struct Asked {
  const void* input;
  void* output;
  int64_t output_rows;
  absl::Span<const int64_t> shape;
};

bool IsElementwise(RequestKind kind) {
  return kind == RequestKind::kAllreduce || kind == RequestKind::kBroadcast;
}

size_t OutputBytes(const Request& request, const Asked& tensor, const StagedPlace& place) {
  const size_t element = ElementBytes(request.signature);
  if (tensor.output == nullptr) return 0;
  if (IsElementwise(request.signature.kind) || IsPair(request.signature.kind)) {
    return ElementsOf(tensor.shape, 0) * element;
  }
  const int64_t rows = request.signature.kind == RequestKind::kReduceScatter
                           ? ScatteredRows(tensor.shape[0], place.size, place.index).count
                           : tensor.output_rows;
  return static_cast<size_t>(rows) * ElementsOf(tensor.shape, 1) * element;
}

bool Brings(const Request& request, const StagedPlace& place) {
  if (request.signature.kind == RequestKind::kReceive) return false;
  return request.signature.kind != RequestKind::kBroadcast || request.root_index == place.index;
}

// How far `inner` lies within the `bytes` at `outer`; -1: it does not.
ptrdiff_t Within(const void* outer, size_t bytes, const void* inner) {
  const auto from = reinterpret_cast<uintptr_t>(outer), at = reinterpret_cast<uintptr_t>(inner);
  return outer != nullptr && at >= from && at < from + bytes ? static_cast<ptrdiff_t>(at - from)
                                                             : -1;
}

// Takes room from `plan`. A call that is in place on the device is in place here, too, and an
// elementwise call is in any case: one piece is then enough.
StagedTensor Place(const Request& request, const Asked& tensor, const StagedPlace& place,
                   StagedPlan* plan) {
  const size_t whole = ElementsOf(tensor.shape, 0) * ElementBytes(request.signature);
  StagedTensor staged;
  staged.input = tensor.input;
  staged.input_bytes = Brings(request, place) ? whole : 0;
  staged.output = tensor.output;
  staged.output_bytes = OutputBytes(request, tensor, place);
  const auto take = [plan](size_t bytes) {
    const size_t at = plan->bytes;
    plan->bytes += Lines(bytes);
    return at;
  };
  const ptrdiff_t in_output = Within(tensor.output, staged.output_bytes, tensor.input);
  const ptrdiff_t in_input = Within(tensor.input, whole, tensor.output);
  if (IsElementwise(request.signature.kind) || IsPair(request.signature.kind)) {
    staged.input_at = staged.output_at = take(whole);
  } else if (in_output >= 0 && staged.output_bytes >= whole) {
    staged.output_at = take(staged.output_bytes);
    staged.input_at = staged.output_at + static_cast<size_t>(in_output);
  } else {
    staged.input_at = take(whole);
    staged.output_at =
        in_input >= 0 ? staged.input_at + static_cast<size_t>(in_input) : take(staged.output_bytes);
  }
  return staged;
}

// Copies what every request on host memory takes over.
void CopyAsked(const Request& asked, const StagedWhere& where, StagedRequest* made) {
  made->of = where.of;
  Request& request = made->request;
  request.signature = asked.signature;
  request.signature.device_type = HVD_CPU;
  // A group's types have been agreed on together; behind that each goes by itself.
  request.signature.group_types = std::min<uint8_t>(request.signature.group_types, 1);
  if (!IsPair(asked.signature.kind)) request.name = kPartName + std::string(where.agreed_name);
  request.root_index = asked.root_index;
  request.peer = asked.peer;
  request.tag = asked.tag;
}

void AddCopies(const StagedTensor& tensor, size_t from, size_t bytes, StagedRequest* made) {
  if (tensor.input_bytes > 0 && bytes > 0) {
    auto* device = const_cast<std::byte*>(static_cast<const std::byte*>(tensor.input));
    made->in.push_back({device + from, tensor.input_at + from, bytes});
  }
}

// The root of a broadcast in place has what it gives.
void AddBack(const StagedTensor& tensor, size_t from, size_t bytes, StagedRequest* made) {
  const bool own = made->request.signature.kind == RequestKind::kBroadcast &&
                   tensor.input_bytes > 0 && tensor.input == tensor.output;
  if (tensor.output == nullptr || bytes == 0 || own) return;
  made->back.push_back(
      {static_cast<std::byte*>(tensor.output) + from, tensor.output_at + from, bytes});
}

std::unique_ptr<StagedRequest> MakePiece(const Request& asked, const StagedTensor& tensor,
                                         const StagedWhere& where, size_t piece) {
  auto made = std::make_unique<StagedRequest>();
  CopyAsked(asked, where, made.get());
  Request& request = made->request;
  const size_t whole = TensorBytes(request.signature);
  const size_t from = piece * kStagedPieceBytes;
  const size_t bytes = std::min(kStagedPieceBytes, whole - from);
  request.name += " (part " + std::to_string(piece + 1) + ")";
  request.signature.ndim = 1;
  request.signature.shape = {};
  request.signature.shape[0] = static_cast<int64_t>(bytes / ElementBytes(request.signature));
  request.buffers.input = where.memory + tensor.input_at + from;
  request.buffers.output = where.memory + tensor.output_at + from;
  AddCopies(tensor, from, bytes, made.get());
  AddBack(tensor, from, bytes, made.get());
  return made;
}

void PlaceSingle(const Request& asked, const StagedTensor& tensor, const StagedWhere& where,
                 Request* request) {
  const bool sends = asked.signature.kind == RequestKind::kSend;
  request->buffers.input = where.memory + tensor.input_at;
  if (tensor.output != nullptr && !sends) request->buffers.output = where.memory + tensor.output_at;
  request->buffers.output_rows = asked.buffers.output_rows;
  request->buffers.splits = asked.buffers.splits;
  request->buffers.wants_received_splits = asked.buffers.wants_received_splits;
}

void PlaceParts(const Request& asked, absl::Span<const StagedTensor> tensors,
                const StagedWhere& where, Request* request) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const RequestPart& given = asked.buffers.parts[i];
    RequestPart part;
    part.input = where.memory + tensors[i].input_at;
    if (given.output != nullptr) part.output = where.memory + tensors[i].output_at;
    part.output_rows = given.output_rows;
    part.position = given.position;
    part.shape = given.shape;
    request->buffers.parts.push_back(std::move(part));
  }
}

bool TravelsInPieces(const Request& asked) {
  return !asked.signature.is_group() && IsElementwise(asked.signature.kind) &&
         asked.signature.op != HVD_ADASUM && TensorBytes(asked.signature) > 2 * kStagedPieceBytes;
}

}  // namespace

StagedPlan PlanStaging(absl::Span<const std::unique_ptr<Request>> requests,
                       const StagedPlace& place) {
  StagedPlan plan;
  for (const auto& request : requests) {
    const Signature& s = request->signature;
    const RequestBuffers& buffers = request->buffers;
    std::vector<StagedTensor>& tensors = plan.tensors.emplace_back();
    if (!s.is_group()) {
      const absl::Span<const int64_t> shape(s.shape.data(), static_cast<size_t>(s.ndim));
      const Asked asked = {buffers.input, buffers.output, buffers.output_rows, shape};
      tensors.push_back(Place(*request, asked, place, &plan));
    }
    for (const RequestPart& part : buffers.parts) {
      const Asked asked = {part.input, part.output, part.output_rows, part.shape};
      tensors.push_back(Place(*request, asked, place, &plan));
    }
  }
  return plan;
}

std::vector<std::unique_ptr<StagedRequest>> MakeStagedRequests(
    const Request& asked, absl::Span<const StagedTensor> tensors, const StagedWhere& where,
    const ResultSource& result_source) {
  std::vector<std::unique_ptr<StagedRequest>> all;
  if (TravelsInPieces(asked)) {
    const size_t pieces =
        (TensorBytes(asked.signature) + kStagedPieceBytes - 1) / kStagedPieceBytes;
    for (size_t i = 0; i < pieces; ++i) all.push_back(MakePiece(asked, tensors[0], where, i));
    return all;
  }
  auto made = std::make_unique<StagedRequest>();
  CopyAsked(asked, where, made.get());
  if (asked.signature.is_group()) {
    PlaceParts(asked, tensors, where, &made->request);
  } else {
    PlaceSingle(asked, tensors[0], where, &made->request);
  }
  const bool allocates =
      std::any_of(tensors.begin(), tensors.end(),
                  [](const StagedTensor& tensor) { return tensor.output == nullptr; });
  if (allocates && !IsPair(asked.signature.kind)) made->request.buffers.source = result_source;
  for (const StagedTensor& tensor : tensors) {
    AddCopies(tensor, 0, tensor.input_bytes, made.get());
    AddBack(tensor, 0, tensor.output_bytes, made.get());
  }
  all.push_back(std::move(made));
  return all;
}

}  // namespace hvd::rt
