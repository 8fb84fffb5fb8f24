// Allreduces of a batch, run as one.
#include <algorithm>

#include "runtime/engine/engine.h"
#include "runtime/engine/execution/neutral.h"
#include "runtime/engine/execution/reduction.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd {
namespace {

// Where the host's ranks have the tensors of a run, as this process sees their arenas.
class SharedBuffers {
 public:
  explicit SharedBuffers(EpochWorld* world)
      : world_(world), locals_(static_cast<size_t>(world->place().local_size)) {}

  // False when a tensor lies outside its arena.
  bool Add(const LogEntry& entry) {
    const Signature& s = entry.signature;
    const size_t bytes = TensorBytes(s);
    for (size_t local = 0; local < locals_; ++local) {
      const int in_job = world_->LocalRankInJob(static_cast<int>(local));
      const HostBuffers& at = entry.host_buffers[local];
      inputs_.push_back(world_->arenas()->Address(in_job, at.input_at, bytes));
      outputs_.push_back(world_->arenas()->Address(in_job, at.output_at, bytes));
      if (inputs_.back() == nullptr || outputs_.back() == nullptr) return false;
    }
    return true;
  }
  // All parts are whole tensors here: a group has no shared buffers.
  void GiveTo(std::vector<ReducePart>* parts) const {
    for (size_t i = 0; i * locals_ < inputs_.size(); ++i) {
      (*parts)[i].host_inputs = {&inputs_[i * locals_], locals_};
      (*parts)[i].host_outputs = {&outputs_[i * locals_], locals_};
    }
  }

 private:
  EpochWorld* const world_;
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

}  // namespace

// What this rank, having joined, has not: neutral values, and a place to drop results.
void Engine::PrepareAbsent(const std::vector<LogEntry>& batch,
                           const std::vector<Request*>& requests, const std::vector<size_t>& run) {
  size_t absent = 0;  // elements of the largest
  for (const size_t i : run) {
    if (requests[i] == nullptr) absent = std::max(absent, batch[i].signature.elements());
  }
  if (absent == 0) return;
  const Signature& first = batch[run[0]].signature;
  const size_t bytes = absent * DtypeBytes(static_cast<hvd_dtype_t>(first.dtype));
  if (neutral_.size() < bytes) neutral_.resize(bytes);
  if (dropped_.size() < bytes) dropped_.resize(bytes);
  FillNeutral(first, neutral_.data(), absent);
}

absl::Status Engine::ExecuteFused(const std::vector<LogEntry>& batch,
                                  const std::vector<Request*>& requests,
                                  const std::vector<size_t>& run) {
  PrepareAbsent(batch, requests, run);
  const LogEntry& first = batch[run[0]];
  SharedBuffers buffers(world_.get());
  const bool shared =
      std::all_of(run.begin(), run.end(), [&](size_t i) { return !batch[i].host_buffers.empty(); });
  std::vector<ReducePart> parts;
  for (const size_t i : run) {
    if (requests[i] != nullptr) {
      AppendParts(*requests[i], &parts);
    } else {
      ReducePart part;
      part.input = neutral_.data();
      part.output = dropped_.data();
      part.count = batch[i].signature.elements();
      AppendAbsent(part, batch[i].signature.group_count, &parts);
    }
    // The others count on this rank to read and write their tensors.
    if (shared && !buffers.Add(batch[i])) {
      return absl::InternalError("a tensor of another rank of this host lies outside its arena");
    }
  }
  buffers.GiveTo(&parts);
  return Reduce(first, parts, &world_->collectives());
}

}  // namespace hvd
