// The executor's work on requests that go directly. Nothing here waits.
#include <cstring>

#include "runtime/engine/arena_offsets.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/reduction.h"

namespace hvd {

bool Engine::CanStep(const LocalName& name) const {
  const Direct& direct = *world_->direct();
  if (name.summed) return direct.AllDone(name.ticket);
  return direct.Look(name.ticket, name.word) != Direct::Seen::kNotYet;
}

bool Engine::DirectIsReady() const {
  if (marked_count_.load(std::memory_order_acquire) != 0) return true;
  for (const LocalName* name : watched_) {
    if (CanStep(*name)) return true;
  }
  return false;
}

void Engine::WatchMarkedLocked() {
  watched_.insert(watched_.end(), marked_.begin(), marked_.end());
  marked_.clear();
  marked_count_.store(0, std::memory_order_relaxed);
}

bool Engine::StepDirect() {
  if (marked_count_.load(std::memory_order_acquire) != 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    WatchMarkedLocked();
  }
  for (size_t i = 0; i < watched_.size(); ++i) {
    LocalName* name = watched_[i];
    if (!CanStep(*name)) continue;
    const bool all_same =
        name->summed || world_->direct()->Look(name->ticket, name->word) == Direct::Seen::kAllSame;
    if (all_same && name->in_arena && !name->summed) {
      SumInArenas(name);
      return true;
    }
    watched_.erase(watched_.begin() + static_cast<ptrdiff_t>(i));
    if (!all_same) {
      FallBack(name);
    } else if (name->in_arena) {
      FinishInArenas(name);
    } else {
      FinishDirect(name);
    }
    return true;
  }
  return false;
}

void Engine::FinishDirect(LocalName* name) {
  const Direct& direct = *world_->direct();
  Request* request = name->pending;
  LogEntry entry;
  entry.signature = request->signature;
  entry.contributors = direct.size();
  if (request->signature.kind == RequestKind::kAllgather) {
    const size_t row_bytes = request->signature.row_elements() *
                             DtypeBytes(static_cast<hvd_dtype_t>(request->signature.dtype));
    for (int peer = 0; peer < direct.size(); ++peer) {
      const size_t bytes = Direct::BytesOf(direct.WordAt(name->ticket, peer));
      entry.rows.push_back(static_cast<int64_t>(bytes / row_bytes));
    }
  }
  DirectCollectives collectives(direct, name->ticket);
  const int64_t begin_ns = timeline_.Stamp();
  request->status = ExecuteRequest(request, entry, &collectives);
  NoteDirect(*request, begin_ns);
  Complete({&request, 1});
}

// This rank's slice, in everyone's buffers. The others see when it is done; a status that says
// otherwise breaks the epoch, for they count on this rank.
void Engine::SumInArenas(LocalName* name) {
  const Direct& direct = *world_->direct();
  const Request& request = *name->pending;
  const void* inputs[kMaxLocalRanks];
  void* outputs[kMaxLocalRanks];
  LogEntry entry;
  entry.signature = request.signature;
  entry.contributors = direct.size();
  ReducePart part;
  part.input = request.input;
  part.output = request.output;
  part.count = request.signature.elements();
  const size_t bytes = part.count * DtypeBytes(static_cast<hvd_dtype_t>(entry.signature.dtype));
  bool found = true;
  for (int peer = 0; peer < direct.size(); ++peer) {
    ArenaOffsets at;
    memcpy(&at, direct.TensorAt(name->ticket, peer), sizeof(at));
    inputs[peer] = world_->arenas()->Address(world_->LocalRankInJob(peer), at.input, bytes);
    outputs[peer] = world_->arenas()->Address(world_->LocalRankInJob(peer), at.output, bytes);
    found = found && inputs[peer] != nullptr && outputs[peer] != nullptr;
  }
  const auto size = static_cast<size_t>(direct.size());
  part.host_inputs = {inputs, size};
  part.host_outputs = {outputs, size};
  if (timeline_.on()) name->begin_ns = Timeline::Now();
  const absl::Status summed =
      found ? world_->on_host()->SumOwnSlice(PlainArgs(entry, {&part, 1}))
            : absl::InternalError("a tensor of another rank of this host lies outside its arena");
  if (!summed.ok()) {
    (void)BreakIfBroken(absl::IsAborted(summed) ? summed : absl::InternalError(summed.message()));
    return;
  }
  name->summed = true;
  world_->direct()->PublishDone(name->ticket);
  world_->waiter().Ring();
}

void Engine::FinishInArenas(LocalName* name) {
  Request* request = name->pending;
  NoteDirect(*request, name->begin_ns);
  Complete({&request, 1});
}

// Not all ranks can go directly: this one asks the board like them.
void Engine::FallBack(LocalName* name) {
  absl::Status marked;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    marked = MarkOnBoard(name);
  }
  world_->waiter().Ring();
  if (marked.ok() || BreakIfBroken(marked)) return;
  Request* request = name->pending;
  request->status = marked;
  Complete({&request, 1});
}

}  // namespace hvd
