#include "runtime/engine/report.h"

namespace hvd {

bool RunsWhileJoined(RequestKind kind) {
  return kind == RequestKind::kAllreduce || kind == RequestKind::kBarrier ||
         kind == RequestKind::kJoin || kind == RequestKind::kLeave;
}

LogEntry Decide(std::string_view name, const Report& report, int world_size) {
  LogEntry entry;
  entry.signature = report.first.signature;
  entry.contributors = report.contributors;
  if (report.other) {
    entry.error = MismatchText(name, report.first, *report.other);
  } else if (report.contributors < world_size && !RunsWhileJoined(entry.signature.kind)) {
    entry.error = "tensor '" + std::string(name) + "': rank " + std::to_string(report.first.rank) +
                  " asked for " + Describe(report.first.signature) + ", but rank " +
                  std::to_string(report.joined_rank) +
                  " has joined (hvd_join) and gives no more tensors. Only allreduce and barrier "
                  "go on without it; call hvd_join on all ranks first";
  } else if (entry.signature.kind == RequestKind::kJoin) {
    entry.result = report.last_joined;
  }
  return entry;
}

}  // namespace hvd
