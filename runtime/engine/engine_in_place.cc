// Allreduces on one host whose marks say where the tensors lie: in the arenas, or, for a tensor in
// private memory, in its rank's stage. Each rank sums its slice out of everyone's and into
// everyone's. Its own slice of a private tensor is never staged, only the others'.
#include <cstring>

#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/slices.h"
#include "runtime/engine/arena_offsets.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/reduction.h"

namespace hvd {
namespace {

size_t WidthOf(const Signature& s) { return DtypeBytes(static_cast<hvd_dtype_t>(s.dtype)); }

// Calls f(first byte, bytes) for what is before and what is behind the slice of rank `index`.
template <class F>
void ForOthersSlices(const Direct& direct, const Signature& signature, const F& f) {
  const size_t width = WidthOf(signature);
  const size_t count = signature.elements();
  const size_t begin = EvenBound(count, direct.size(), direct.index()) * width;
  const size_t end = EvenBound(count, direct.size(), direct.index() + 1) * width;
  if (begin > 0) f(size_t{0}, begin);
  if (count * width > end) f(end, count * width - end);
}

}  // namespace

// One at a time: a rank's stage is free when nothing of its is pending.
bool Engine::MayStage(const Request& request) const {
  if (!request.alone) return false;
  const size_t bytes = request.signature.elements() * WidthOf(request.signature);
  return bytes <= Direct::kStageBytes;
}

void Engine::StageOthersSlices(const Request& request) {
  const Direct& direct = *world_->direct();
  std::byte* stage = direct.Stage(direct.index(), Direct::SkewOf(request.input));
  const auto* input = static_cast<const std::byte*>(request.input);
  ForOthersSlices(direct, request.signature,
                  [&](size_t at, size_t bytes) { CopyBytes(stage + at, input + at, bytes); });
}

void Engine::CollectOthersSlices(const Request& request) {
  const Direct& direct = *world_->direct();
  const std::byte* stage = direct.Stage(direct.index(), Direct::SkewOf(request.input));
  auto* output = static_cast<std::byte*>(request.output);
  ForOthersSlices(direct, request.signature,
                  [&](size_t at, size_t bytes) { CopyBytes(output + at, stage + at, bytes); });
}

bool Engine::FindInPlace(const LocalName& name, ReducePart* part, InPlaceBuffers* buffers) {
  const Direct& direct = *world_->direct();
  const Request& request = *name.pending;
  part->input = request.input;
  part->output = request.output;
  part->count = request.signature.elements();
  const size_t bytes = part->count * WidthOf(request.signature);
  for (int peer = 0; peer < direct.size(); ++peer) {
    const void*& input = buffers->inputs[peer];
    void*& output = buffers->outputs[peer];
    if (peer == direct.index()) {
      input = request.input;
      output = request.output;
    } else if (name.staged) {
      uint64_t skew = 0;
      memcpy(&skew, direct.TensorAt(name.ticket, peer), sizeof(skew));
      input = output = direct.Stage(peer, skew);
    } else {
      ArenaOffsets at;
      memcpy(&at, direct.TensorAt(name.ticket, peer), sizeof(at));
      input = world_->arenas()->Address(world_->LocalRankInJob(peer), at.input, bytes);
      output = world_->arenas()->Address(world_->LocalRankInJob(peer), at.output, bytes);
    }
    if (input == nullptr || output == nullptr) return false;
  }
  const auto size = static_cast<size_t>(direct.size());
  part->host_inputs = {buffers->inputs, size};
  part->host_outputs = {buffers->outputs, size};
  return true;
}

// The others see when it is done; a status that says otherwise breaks the epoch, for they count on
// this rank.
void Engine::SumInPlace(LocalName* name) {
  LogEntry entry;
  entry.signature = name->pending->signature;
  entry.contributors = world_->direct()->size();
  ReducePart part;
  InPlaceBuffers buffers;
  const bool found = FindInPlace(*name, &part, &buffers);
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

void Engine::FinishInPlace(LocalName* name) {
  Request* request = name->pending;
  if (name->staged) CollectOthersSlices(*request);
  world_->direct()->OwnNext(name->ticket, name->word);
  NoteDirect(*request, name->begin_ns);
  Complete({&request, 1}, true);
}

}  // namespace hvd
