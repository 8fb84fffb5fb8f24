// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/batch_turns.h"

#include <algorithm>
#include <utility>

#include "runtime/engine/execution/reduction.h"

namespace hvd::rt {
namespace {

// A leave beside ranks that have joined ends nothing in order: who left has told the others.
bool EndsInOrder(const LogEntry& entry) {
  return entry.signature.kind == RequestKind::kLeave && entry.error.empty();
}

bool IsDeparture(const Request* request) {
  return request->signature.kind == RequestKind::kJoin ||
         request->signature.kind == RequestKind::kLeave;
}

}  // namespace

absl::StatusOr<BatchTurns::Turn> BatchTurns::Step() {
  if (MustRest()) return Turn::kNothing;
  AgreedBatch batch;
  bool closed = false;
  batch.entries = parts_.intake->ways().board().Next(&closed);
  if (closed) place_.world->waiter().Ring();
  if (batch.entries.empty()) return Turn::kNothing;
  // A request is missing, too, when this rank's mark was refused because the epoch ends.
  if (!FindRequests(&batch)) {
    return place_.world->waiter().EndEpoch(
        "the schedule names a tensor that this rank has not submitted");
  }
  return Execute(std::move(batch));
}

// False when something is missing that this rank must have submitted.
bool BatchTurns::FindRequests(AgreedBatch* batch) {
  Intake& intake = *parts_.intake;
  batch->requests.reserve(batch->entries.size());
  ExecutorRole::Lock lock(place_.role);
  for (const LogEntry& entry : batch->entries) {
    LocalName* name = intake.ways().Take(entry, intake.pending().submissions());
    batch->requests.push_back(name != nullptr ? name->pending : nullptr);
    if (name == nullptr && !intake.departure().has_joined()) return false;
  }
  return true;
}

absl::StatusOr<BatchTurns::Turn> BatchTurns::Execute(AgreedBatch batch) {
  ExecutedBatch executed;
  absl::Status status = parts_.batches->Execute(&batch, &executed);
  if (!status.ok()) return status;
  const int size = place_.world->topology().size();
  const auto by_all = [size](const LogEntry& entry) { return AllContribute(entry, size); };
  Ways& ways = parts_.intake->ways();
  if (std::any_of(batch.entries.begin(), batch.entries.end(), by_all)) ways.pairs().AllAreBack();
  ways.board().Advance();
  rest_.tunes = parts_.batches->EndsSample(batch);
  rest_.is_end = std::any_of(batch.entries.begin(), batch.entries.end(), EndsInOrder);
  Complete(std::move(executed));
  return EndRest();
}

void BatchTurns::Complete(ExecutedBatch executed) {
  if (!executed.launched.empty()) {
    parts_.completer->Complete(executed.launched, Completer::Over::kLaunched);
  }
  std::vector<Request*>& finished = executed.finished;
  if (parts_.device->count() > 0) {
    const auto departs =
        std::stable_partition(finished.begin(), finished.end(),
                              [](const Request* request) { return !IsDeparture(request); });
    rest_.requests.assign(departs, finished.end());
    finished.erase(departs, finished.end());
  }
  if (executed.launched.empty() || !finished.empty()) parts_.completer->Complete(finished);
}

absl::StatusOr<BatchTurns::Turn> BatchTurns::EndRest() {
  if (!rest_.any() || MustRest()) return Turn::kWorked;
  const Rest rest = std::exchange(rest_, {});
  if (!rest.requests.empty()) parts_.completer->Complete(rest.requests);
  if (rest.tunes) {
    if (absl::Status tuned = Tune(); !tuned.ok()) return tuned;
  }
  return rest.is_end ? Turn::kAllLeft : Turn::kWorked;
}

absl::Status BatchTurns::Tune() {
  if (absl::Status tuned = parts_.batches->Tune(); !tuned.ok()) return tuned;
  const HierarchicalThresholds& thresholds = parts_.batches->thresholds();
  place_.world->set_collectives().SetThresholds(thresholds);
  parts_.intake->ways().direct().set_stream_bytes(thresholds.host.stream_bytes);
  return absl::OkStatus();
}

}  // namespace hvd::rt
