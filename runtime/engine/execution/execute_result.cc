// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <new>

#include "runtime/engine/execution/execute.h"
#include "runtime/engine/request/local_name.h"

namespace hvd::rt {

// The alignment that frameworks want of memory that they adopt.
constexpr size_t kResultAlignment = 64;

std::string NameOf(const Request& request) {
  return std::string(KindName(request.signature.kind)) + " '" +
         std::string(PlainName(AgreedName(request))) + "'";
}

ResultPlace PlaceOf(Request* request) {
  return {request->buffers.input,         request->buffers.output,
          request->buffers.output_rows,   &request->result.owned,
          &request->result.shape,         request->buffers.source,
          request->signature.dtype,       0,
          request->result.allocate_owned, request->buffers.device.id};
}

ResultPlace PlaceOf(const Request& request, RequestPart* part) {
  return {part->input,
          part->output,
          part->output_rows,
          &part->owned_result,
          &part->result_shape,
          request.buffers.source,
          request.signature.dtype,
          part->position,
          request.result.allocate_owned,
          request.buffers.device.id};
}

namespace {

// The call was checked, but for an input within an allgather's output: see CheckOverlap.
bool LiesWrong(const ResultPlace& place, const ResultSize& size) {
  const auto input = reinterpret_cast<uintptr_t>(place.input);
  const auto output = reinterpret_cast<uintptr_t>(place.output);
  if (size.own_bytes == 0 || input == output + size.own_at) return false;
  return input < output + size.bytes && output < input + size.own_bytes;
}

// Null: the caller gives none.
void* AskForResult(const ResultPlace& place) {
  const std::vector<int64_t>& shape = *place.result_shape;
  return place.source.give(place.source.arg, shape.data(), static_cast<int32_t>(shape.size()),
                           static_cast<int32_t>(place.dtype), place.position);
}

}  // namespace

absl::Status PlaceResult(absl::FunctionRef<std::string()> what, const ResultPlace& place,
                         const ResultSize& size, void** result) {
  const bool fits = place.output != nullptr && place.output_rows == size.rows;
  const bool own = !fits || LiesWrong(place, size);
  *result = place.output;
  if (own) {
    place.result_shape->assign(size.shape.begin(), size.shape.end());
    place.result_shape->front() = size.rows;
    const bool asked = place.source.give != nullptr;
    if (asked) *result = AskForResult(place);
    if (asked && (*result != nullptr || size.bytes == 0)) return absl::OkStatus();
    const size_t lines = size.bytes / kResultAlignment + 1;
    *place.owned_result = place.allocate != nullptr
                              ? place.allocate(place.device, size.bytes)
                              : aligned_alloc(kResultAlignment, lines * kResultAlignment);
    *result = *place.owned_result;
    if (*result == nullptr) throw std::bad_alloc();
  }
  if (place.source.give != nullptr) {
    return absl::ResourceExhaustedError(what() + ": options.result_fn gave no memory for " +
                                        std::to_string(size.bytes) + " bytes");
  }
  if (place.output == nullptr || !own) return absl::OkStatus();
  if (fits) {
    return absl::FailedPreconditionError(
        what() + ": the input lies in the output, but not where this rank's rows come, " +
        std::to_string(size.own_at) + " bytes from its beginning");
  }
  return absl::FailedPreconditionError(what() + ": the output has " +
                                       std::to_string(place.output_rows) +
                                       " rows, the result has " + std::to_string(size.rows));
}

}  // namespace hvd::rt
