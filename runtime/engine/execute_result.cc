#include <cstdlib>
#include <new>

#include "runtime/engine/execute.h"
#include "runtime/engine/names.h"

namespace hvd {

std::string NameOf(const Request& request) {
  return std::string(KindName(request.signature.kind)) + " '" +
         std::string(PlainName(AgreedName(request))) + "'";
}

ResultPlace PlaceOf(Request* request) {
  return {request->output, request->output_rows, &request->owned_result, &request->result_shape};
}

ResultPlace PlaceOf(RequestPart* part) {
  return {part->output, part->output_rows, &part->owned_result, &part->result_shape};
}

absl::Status PlaceResult(absl::FunctionRef<std::string()> what, const ResultPlace& place,
                         const ResultSize& size, void** result) {
  const bool own = place.output == nullptr || place.output_rows != size.rows;
  *result = place.output;
  if (own) {
    place.result_shape->assign(size.shape.begin(), size.shape.end());
    place.result_shape->front() = size.rows;
    *place.owned_result = malloc(size.bytes > 0 ? size.bytes : 1);
    *result = *place.owned_result;
    if (*result == nullptr) throw std::bad_alloc();
  }
  if (place.output == nullptr || !own) return absl::OkStatus();
  return absl::FailedPreconditionError(what() + ": the output has " +
                                       std::to_string(place.output_rows) +
                                       " rows, the result has " + std::to_string(size.rows));
}

}  // namespace hvd
