// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/report.h"

#include "base/printable.h"

namespace hvd::rt {

bool RunsWhileJoined(const Signature& signature) {
  const RequestKind kind = signature.kind;
  if (signature.refuses_joined != 0) return false;
  return kind == RequestKind::kAllreduce || kind == RequestKind::kAllgather ||
         kind == RequestKind::kBarrier || kind == RequestKind::kJoin;
}

namespace {

std::string JoinedText(std::string_view name, const Report& report, int world_size) {
  return "tensor " + ShownName(name) + ": rank " + std::to_string(report.first.rank) +
         " asked for " + Describe(report.first.signature) + ", which needs every rank, but " +
         std::to_string(world_size - report.contributors) + " of " + std::to_string(world_size) +
         " ranks have joined, rank " + std::to_string(report.joined_rank) + " among them; " +
         (report.first.signature.refuses_joined != 0
              ? "HVD_REFUSE_JOINED in its options refuses that"
              : "while some have, only allreduce, allgather and barrier are possible");
}

}  // namespace

LogEntry Decide(std::string_view name, const Report& report, int world_size) {
  LogEntry entry;
  entry.signature = report.first.signature;
  entry.contributors = report.contributors;
  if (report.other) {
    entry.error = MismatchText(name, report.first, *report.other);
  } else if (report.contributors < world_size && !RunsWhileJoined(entry.signature)) {
    entry.error = JoinedText(name, report, world_size);
  } else if (entry.signature.kind == RequestKind::kJoin) {
    entry.result = report.last_joined;
  }
  return entry;
}

}  // namespace hvd::rt
