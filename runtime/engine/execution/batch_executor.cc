// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/batch_executor.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "runtime/engine/execution/execute.h"
#include "runtime/engine/execution/fusion.h"
#include "runtime/engine/execution/neutral.h"
#include "runtime/engine/execution/reduction.h"
#include "runtime/engine/request/tensor_bytes.h"
#include "runtime/engine/request/tensor_places.h"

namespace hvd::rt {
namespace {

// Where the host's ranks have the tensors of a run, as this process sees their arenas.
class SharedBuffers {
 public:
  explicit SharedBuffers(const TensorPlaces& places) : places_(places), locals_(places.ranks()) {}

  absl::Status Add(const LogEntry& entry) {
    const Signature& s = entry.signature;
    const size_t bytes = TensorBytes(s);
    for (size_t local = 0; local < locals_; ++local) {
      const HostBuffers& at = entry.host_buffers[local];
      const auto input = places_.Address(local, at.input_at, bytes);
      if (!input.ok()) return input.status();
      const auto output = places_.Address(local, at.output_at, bytes);
      if (!output.ok()) return output.status();
      inputs_.push_back(*input);
      outputs_.push_back(*output);
    }
    return absl::OkStatus();
  }
  // All parts are whole tensors here: a group has no shared buffers.
  void GiveTo(std::vector<ReducePart>* parts) const {
    for (size_t i = 0; i * locals_ < inputs_.size(); ++i) {
      (*parts)[i].host_inputs = {&inputs_[i * locals_], locals_};
      (*parts)[i].host_outputs = {&outputs_[i * locals_], locals_};
    }
  }

 private:
  const TensorPlaces& places_;
  const size_t locals_;
  std::vector<const void*> inputs_;  // by part, then by local rank
  std::vector<void*> outputs_;
};

// All that a joined rank has for one entry, in as many parts as the others bring.
void AppendAbsent(ReducePart part, int group_count, std::vector<ReducePart>* parts) {
  parts->push_back(part);
  part.count = 0;
  for (int more = 1; more < group_count; ++more) parts->push_back(part);
}

// Whether this is a group whose other types run behind it.
bool HasOtherTypes(const LogEntry& entry, const Request* request) {
  return entry.signature.group_types > 1 || (request != nullptr && !request->course.others.empty());
}

bool HasSeveralTypes(const AgreedBatch& batch) {
  for (size_t i = 0; i < batch.entries.size(); ++i) {
    if (HasOtherTypes(batch.entries[i], batch.requests[i])) return true;
  }
  return false;
}

// Returns what a rank that has joined tells of another type: no byte is more than the others'.
Signature NoSignature() {
  static_assert(std::is_trivially_copyable_v<Signature>);
  Signature none;
  std::memset(static_cast<void*>(&none), 0, sizeof(none));
  return none;
}

// This rank's.
void AppendRequests(const AgreedBatch& batch, const std::vector<size_t>& run,
                    std::vector<Request*>* requests) {
  for (const size_t i : run) {
    if (batch.requests[i] != nullptr) requests->push_back(batch.requests[i]);
  }
}

// An entry that ranks have asked for differently runs nowhere.
bool IsOnDevice(const LogEntry& entry) {
  return entry.error.empty() && entry.signature.is_on_device();
}

}  // namespace

BatchExecutor::BatchExecutor(const BatchParts& parts, const EngineConfig& config,
                             std::unique_ptr<Tuner> tuner)
    : parts_(parts),
      config_(config),
      tuned_(config),
      tuner_(std::move(tuner)),
      batch_wait_us_(config.batch_wait_us),
      fusion_threshold_(config.fusion_threshold) {}

// Returns what this rank asks for in the other types of a group; a rank that has joined, and asks
// for nothing yet, gets them from the others.
absl::StatusOr<std::vector<Signature>> BatchExecutor::OtherTypes(const LogEntry& entry,
                                                                 const Request* request) {
  std::vector<Signature> types;
  if (request != nullptr) {
    for (const auto& other : request->course.others) types.push_back(other->signature);
  }
  // A refused group runs nowhere, and the ranks that asked for it may have asked for different
  // groups.
  if (!entry.error.empty() || AllContribute(entry, parts_.collectives->size())) return types;
  types.resize(static_cast<size_t>(entry.signature.group_types) - 1, NoSignature());
  ReduceArgs most;
  most.input = most.output = types.data();
  most.count = types.size() * sizeof(Signature);
  most.dtype = HVD_UINT8;
  most.op = HVD_MAX;
  if (absl::Status told = parts_.collectives->Allreduce(most); !told.ok()) return told;
  return types;
}

// The ranks have agreed on the first type's request, for all of them: the others run behind it, or
// fail like it.
absl::Status BatchExecutor::SplitGroups(AgreedBatch* batch) {
  AgreedBatch split;
  for (size_t i = 0; i < batch->entries.size(); ++i) {
    const LogEntry& entry = batch->entries[i];
    Request* const request = batch->requests[i];
    split.entries.push_back(entry);
    split.requests.push_back(request);
    if (!HasOtherTypes(entry, request)) continue;
    const auto types = OtherTypes(entry, request);
    if (!types.ok()) return types.status();
    for (size_t type = 0; type < types->size(); ++type) {
      split.entries.push_back(entry);
      split.entries.back().signature = (*types)[type];
      split.requests.push_back(request != nullptr ? request->course.others[type].get() : nullptr);
    }
  }
  *batch = std::move(split);
  return absl::OkStatus();
}

absl::Status BatchExecutor::Execute(AgreedBatch* agreed, ExecutedBatch* executed) {
  const int64_t batch_ns = Timeline::Now();
  if (HasSeveralTypes(*agreed)) {
    if (absl::Status split = SplitGroups(agreed); !split.ok()) return split;
  }
  const AgreedBatch& batch = *agreed;
  const FusionRules rules = {static_cast<size_t>(tuned_.fusion_threshold),
                             tuned_.disable_group_fusion, parts_.several_hosts};
  for (const Run& run : PlanFusion(batch.entries, rules)) {
    const bool first = executed->finished.empty() && executed->launched.empty();
    const Turn turn = {batch, run, {batch_ns, first ? batch_ns : Timeline::Now()}};
    Request* const request = batch.requests[run[0]];
    parts_.notes->BeginRun(batch.entries[run[0]].signature.kind, request, run.size());
    absl::Status status =
        IsOnDevice(batch.entries[run[0]]) ? RunOnDevice(turn, executed) : RunHere(turn, executed);
    parts_.notes->EndRun(!status.ok());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BatchExecutor::RunHere(const Turn& turn, ExecutedBatch* executed) {
  absl::Status status = ExecuteRun(turn.batch, turn.run);
  if (!status.ok() && !IsRefusal(status)) return status;
  const size_t before = executed->finished.size();
  AppendRequests(turn.batch, turn.run, &executed->finished);
  End(turn, absl::MakeSpan(executed->finished).subspan(before), status);
  return absl::OkStatus();
}

// These are over, here.
void BatchExecutor::End(const Turn& turn, absl::Span<Request* const> requests,
                        const absl::Status& status) {
  for (Request* request : requests) {
    if (!status.ok()) request->result.status = status;
  }
  parts_.notes->runs().Ran(turn.times, requests, static_cast<uint64_t>(tuned_.fusion_threshold));
}

absl::Status BatchExecutor::RunOnDevice(const Turn& turn, ExecutedBatch* executed) {
  std::vector<Request*> mine;
  AppendRequests(turn.batch, turn.run, &mine);
  DeviceRun run;
  for (const size_t i : turn.run) {
    run.entries.push_back(&turn.batch.entries[i]);
    run.requests.push_back(turn.batch.requests[i]);
  }
  const LaunchedRun told =
      parts_.notes->Launches(turn.times, mine, static_cast<uint64_t>(tuned_.fusion_threshold));
  absl::StatusOr<bool> takes = Takes(run);
  absl::Status status = takes.status();
  if (status.ok() && *takes) status = parts_.device->Launch(run, told);
  if (!status.ok() && !IsRefusal(status)) {
    return absl::IsAborted(status)
               ? status
               : absl::InternalError(
                     told.what + " cannot be put on the device: " + std::string(status.message()));
  }
  const bool launched = status.ok() && *takes;
  std::vector<Request*>& over = launched ? executed->launched : executed->finished;
  over.insert(over.end(), mine.begin(), mine.end());
  if (launched) return absl::OkStatus();
  for (Request* request : mine) request->result.agreed_only = true;
  End(turn, mine, status);
  return absl::OkStatus();
}

absl::StatusOr<bool> BatchExecutor::Takes(const DeviceRun& run) {
  if (parts_.device->work() == nullptr) return absl::InternalError("this process uses none");
  absl::Status joined = CheckJoined(*run.entries[0], parts_.collectives->size());
  if (!joined.ok()) return joined;
  return parts_.device->Takes(run);
}

absl::Status BatchExecutor::ExecuteRun(const AgreedBatch& batch, const Run& run) {
  const LogEntry& entry = batch.entries[run[0]];
  Request* const request = batch.requests[run[0]];
  if (ReducesPlainly(entry)) return ExecuteFused(batch, run);
  if (request != nullptr) {
    return ExecuteRequest({request, entry, parts_.collectives, parts_.collectives});
  }
  return ExecuteAbsent(entry, parts_.collectives);
}

// Prepares what this rank, having joined, has not: neutral values, and a place to drop results.
void BatchExecutor::PrepareAbsent(const AgreedBatch& batch, const Run& run) {
  size_t absent = 0;  // elements of the largest
  for (const size_t i : run) {
    if (batch.requests[i] == nullptr)
      absent = std::max(absent, batch.entries[i].signature.elements());
  }
  if (absent == 0) return;
  const Signature& first = batch.entries[run[0]].signature;
  const size_t bytes = absent * DtypeBytes(static_cast<hvd_dtype_t>(first.dtype));
  if (neutral_.size() < bytes) neutral_.resize(bytes);
  if (dropped_.size() < bytes) dropped_.resize(bytes);
  FillNeutral(first, neutral_.data(), absent);
}

absl::Status BatchExecutor::ExecuteFused(const AgreedBatch& batch, const Run& run) {
  PrepareAbsent(batch, run);
  const LogEntry& first = batch.entries[run[0]];
  SharedBuffers buffers(*parts_.places);
  const bool shared = std::all_of(run.begin(), run.end(),
                                  [&](size_t i) { return !batch.entries[i].host_buffers.empty(); });
  std::vector<ReducePart> parts;
  for (const size_t i : run) {
    if (batch.requests[i] != nullptr) {
      AppendParts(*batch.requests[i], &parts);
    } else {
      ReducePart part;
      part.input = neutral_.data();
      part.output = dropped_.data();
      part.count = batch.entries[i].signature.elements();
      AppendAbsent(part, batch.entries[i].signature.group_count, &parts);
    }
    // The others count on this rank to read and write their tensors.
    if (!shared) continue;
    if (absl::Status added = buffers.Add(batch.entries[i]); !added.ok()) return added;
  }
  buffers.GiveTo(&parts);
  return Reduce(first, parts, parts_.collectives);
}

// Every rank counts the same batches, so all are here together when a sample is over.
bool BatchExecutor::EndsSample(const AgreedBatch& batch) {
  if (tuner_ == nullptr) return false;
  int64_t bytes = 0;
  for (const LogEntry& entry : batch.entries) {
    bytes += static_cast<int64_t>(TensorBytes(entry.signature));
  }
  return tuner_->CountBatch(bytes);
}

absl::Status BatchExecutor::Tune() {
  TuneDecision decision = tuner_->Decide();
  absl::Status told = parts_.collectives->Broadcast({&decision, &decision, sizeof(decision), 0});
  if (!told.ok()) return told;
  const bool goes_on = tuner_->Adopt(decision, &tuned_);
  batch_wait_us_.store(tuned_.batch_wait_us, std::memory_order_relaxed);
  fusion_threshold_.store(tuned_.fusion_threshold, std::memory_order_relaxed);
  if (!goes_on) tuner_ = nullptr;
  return absl::OkStatus();
}

}  // namespace hvd::rt
