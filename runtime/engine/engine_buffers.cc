// Allreduces and broadcasts in place: marks say where the input and the output lie. Of an allreduce
// each rank sums its slice out of everyone's and into everyone's; its own slice of a private tensor
// is never staged, only the others'.
#include <algorithm>
#include <cstring>

#include "runtime/collective/host/staged_copy.h"
#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/slices.h"
#include "runtime/engine/direct/arena_offsets.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/execution/fusion.h"
#include "runtime/engine/execution/reduction.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd {
namespace {

// Between two looks at the epoch: when it ends, a rank soon leaves the others' tensors alone.
constexpr size_t kUncheckedBytes = size_t{1} << 20;

// Calls f(first byte, bytes) for what is before and what is behind the slice of rank `index`.
template <class F>
void ForOthersSlices(const Direct& direct, const Signature& signature, const F& f) {
  const size_t width = ElementBytes(signature);
  const size_t count = signature.elements();
  const size_t begin = EvenBound(count, direct.size(), direct.index()) * width;
  const size_t end = EvenBound(count, direct.size(), direct.index() + 1) * width;
  if (begin > 0) f(size_t{0}, begin);
  if (count * width > end) f(end, count * width - end);
}

}  // namespace

void Engine::MarkBuffers(LocalName* name) {
  const Request& request = *name->pending;
  const bool sums = request.signature.kind == RequestKind::kAllreduce;
  if (!(sums ? ReducesInPlace(request.signature) : Direct::MayGoDirectly(request.signature))) {
    return;
  }
  const ArenaOffsets offsets = OffsetsInArena(request, world_->arenas());
  name->staged = offsets.input < 0;
  if (name->staged && !(sums && MayStage(request))) return;
  name->in_place = true;
  name->word = Direct::WordInPlace(request.signature, name->staged, sizeof(offsets));
  std::byte* const room = world_->direct()->Room(name->ticket, name->word);
  if (!name->staged) {
    memcpy(room, &offsets, sizeof(offsets));
    return;
  }
  const uint64_t skew = Direct::SkewOf(request.input);
  memcpy(room, &skew, sizeof(skew));
  StageOthersSlices(request);
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

bool Engine::FindBuffers(const LocalName& name, InPlaceBuffers* buffers) {
  const Direct& direct = *world_->direct();
  const Request& request = *name.pending;
  const size_t bytes = TensorBytes(request.signature);
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
  return true;
}

absl::Status Engine::SumInPlace(const LocalName& name) {
  const Request& request = *name.pending;
  InPlaceBuffers buffers;
  if (!FindBuffers(name, &buffers)) return OutsideArena();
  const auto size = static_cast<size_t>(world_->direct()->size());
  LogEntry entry;
  entry.signature = request.signature;
  entry.contributors = world_->direct()->size();
  ReducePart part;
  part.input = request.input;
  part.output = request.output;
  part.count = request.signature.elements();
  part.host_inputs = {buffers.inputs, size};
  part.host_outputs = {buffers.outputs, size};
  return world_->on_host()->SumOwnSlice(PlainArgs(entry, {&part, 1}));
}

// Each rank copies a slice of the root's tensor, into everyone's.
absl::Status Engine::BroadcastInPlace(const LocalName& name) {
  const Direct& direct = *world_->direct();
  const Request& request = *name.pending;
  InPlaceBuffers buffers;
  if (!FindBuffers(name, &buffers)) return OutsideArena();
  const auto* source = static_cast<const std::byte*>(buffers.inputs[request.root_index]);
  const size_t bytes = TensorBytes(request.signature);
  const bool streams = bytes >= config_.thresholds.host.stream_bytes;
  const size_t end = EvenBound(bytes, direct.size(), direct.index() + 1);
  size_t at = EvenBound(bytes, direct.size(), direct.index());
  while (at < end) {
    if (absl::Status alive = world_->waiter().Check(); !alive.ok()) return alive;
    const size_t piece = std::min(end - at, kUncheckedBytes);
    for (int peer = 0; peer < direct.size(); ++peer) {
      auto* output = static_cast<std::byte*>(buffers.outputs[peer]);
      if (output != source) CopyOut(output + at, source + at, piece, streams);
    }
    at += piece;
  }
  return absl::OkStatus();
}

}  // namespace hvd
