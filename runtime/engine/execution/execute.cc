// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/execute.h"

#include "runtime/engine/execution/reduction.h"
#include "runtime/engine/request/mismatch.h"

namespace hvd::rt {
namespace {

// The short way of a single tensor matters: a call of a few bytes takes a microsecond.
absl::Status Allreduce(const Execution& work) {
  const Request& request = *work.request;
  const bool scales_first = ScalesFirst(work.entry, work.sizes->size());
  if (!request.signature.is_group() && !scales_first) {
    ReducePart part;
    part.input = request.buffers.input;
    part.output = request.buffers.output;
    part.count = request.signature.elements();
    return Reduce(work.entry, {&part, 1}, work.collectives);
  }
  std::vector<ReducePart> parts;
  AppendParts(request, &parts);
  absl::Status told = TellCounts(work, absl::MakeSpan(parts));
  if (!told.ok()) return told;
  return scales_first ? ReduceScaledFirst(work.entry, parts, work.collectives)
                      : Reduce(work.entry, parts, work.collectives);
}

absl::Status Broadcast(const Execution& work) {
  const Request& request = *work.request;
  BroadcastArgs args;
  args.input = request.buffers.input;
  args.output = request.buffers.output;
  args.bytes =
      request.signature.elements() * DtypeBytes(static_cast<hvd_dtype_t>(request.signature.dtype));
  args.root = request.root_index;
  return work.collectives->Broadcast(args);
}

}  // namespace

absl::Status ExecuteRequest(const Execution& work) {
  Request* const request = work.request;
  const LogEntry& entry = work.entry;
  request->result.status =
      entry.error.empty()
          ? CheckJoined(entry, work.sizes->size())
          : absl::InvalidArgumentError(WithContents(entry.error, request->contents));
  if (!request->result.status.ok()) return absl::OkStatus();
  switch (request->signature.kind) {
    case RequestKind::kAllreduce:
      return Allreduce(work);
    case RequestKind::kReduceScatter:
      return ExecuteReduceScatter(work);
    case RequestKind::kAllgather:
      return request->signature.is_group() ? ExecuteGroupedAllgather(work) : ExecuteAllgather(work);
    case RequestKind::kAlltoall:
      return ExecuteAlltoall(work);
    case RequestKind::kBroadcast:
      return Broadcast(work);
    case RequestKind::kJoin:
      request->result.number = entry.result;
      return absl::OkStatus();
    case RequestKind::kBarrier:
    case RequestKind::kLeave:
    case RequestKind::kAddProcessSet:
    case RequestKind::kRemoveProcessSet:
    case RequestKind::kSend:
    case RequestKind::kReceive:
      return absl::OkStatus();  // that all have asked for it is all there is to it
  }
  return absl::InternalError("a request of unknown kind");
}

}  // namespace hvd::rt
