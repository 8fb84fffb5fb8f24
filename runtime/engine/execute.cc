#include <cstdlib>
#include <vector>

#include "runtime/engine/engine.h"

namespace hvd {
namespace {

absl::Status Allreduce(const Request& request, Collectives* collectives) {
  ReduceArgs args;
  args.input = request.input;
  args.output = request.output;
  args.count = request.signature.elements();
  args.dtype = static_cast<hvd_dtype_t>(request.signature.dtype);
  args.op = static_cast<hvd_op_t>(request.signature.op);
  return collectives->Allreduce(args);
}

absl::Status Broadcast(const Request& request, Collectives* collectives) {
  BroadcastArgs args;
  args.input = request.input;
  args.output = request.output;
  args.bytes =
      request.signature.elements() * DtypeBytes(static_cast<hvd_dtype_t>(request.signature.dtype));
  args.root = request.signature.root;
  return collectives->Broadcast(args);
}

// Where the result goes: the caller's output if it fits, else memory of our own. A wrong output
// must not keep this rank out of the exchange, which the others are in already; the result is then
// dropped.
absl::Status PlaceResult(Request* request, int64_t rows, size_t bytes, void** result) {
  const Signature& signature = request->signature;
  request->result_shape.assign(signature.shape.begin(), signature.shape.begin() + signature.ndim);
  request->result_shape[0] = rows;
  const bool own = request->output == nullptr || request->output_rows != rows;
  *result = request->output;
  if (own) {
    request->owned_result = malloc(bytes > 0 ? bytes : 1);
    *result = request->owned_result;
    if (request->owned_result == nullptr) {
      return absl::ResourceExhaustedError("allgather '" + request->name + "': no memory for " +
                                          std::to_string(bytes) + " bytes of result");
    }
  }
  if (request->output != nullptr && own) {
    return absl::FailedPreconditionError("allgather '" + request->name + "': the output has " +
                                         std::to_string(request->output_rows) +
                                         " rows, the gathered tensor has " + std::to_string(rows));
  }
  return absl::OkStatus();
}

absl::Status Allgather(Request* request, const LogEntry& entry, Collectives* collectives) {
  const size_t row_bytes = request->signature.row_elements() *
                           DtypeBytes(static_cast<hvd_dtype_t>(request->signature.dtype));
  std::vector<size_t> bytes_by_rank;
  int64_t rows = 0;
  for (const int64_t r : entry.rows) {
    rows += r;
    bytes_by_rank.push_back(static_cast<size_t>(r) * row_bytes);
  }
  GatherArgs args;
  args.input = request->input;
  args.bytes_by_rank = bytes_by_rank;
  const absl::Status placed =
      PlaceResult(request, rows, static_cast<size_t>(rows) * row_bytes, &args.output);
  if (args.output == nullptr && rows > 0 && row_bytes > 0) return placed;
  const absl::Status gathered = collectives->Allgather(args);
  return gathered.ok() ? placed : gathered;
}

}  // namespace

absl::Status ExecuteRequest(Request* request, const LogEntry& entry, Collectives* collectives) {
  if (!entry.error.empty()) return absl::InvalidArgumentError(entry.error);
  switch (request->signature.kind) {
    case RequestKind::kAllreduce:
      return Allreduce(*request, collectives);
    case RequestKind::kAllgather:
      return Allgather(request, entry, collectives);
    case RequestKind::kBroadcast:
      return Broadcast(*request, collectives);
    case RequestKind::kBarrier:
    case RequestKind::kLeave:
      return absl::OkStatus();  // that all have asked for it is all there is to it
    default:
      break;
  }
  return absl::InternalError("a request of unknown kind");
}

}  // namespace hvd
