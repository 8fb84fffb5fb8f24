// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/in_place.h"

#include <algorithm>
#include <cstring>

#include "runtime/collective/host/staged_copy.h"
#include "runtime/collective/kernels/copy.h"
#include "runtime/collective/slices.h"
#include "runtime/engine/execution/fusion.h"
#include "runtime/engine/execution/reduction.h"
#include "runtime/engine/request/tensor_bytes.h"
#include "runtime/engine/request/tensor_places.h"

namespace hvd::rt {
namespace {

// One at a time: a rank's stage is free when nothing of its is pending.
bool MayStage(const Request& request) {
  return request.course.alone && TensorBytes(request.signature) <= Direct::kStageBytes;
}

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

// The place of a rank's input, as its mark tells it. In an alltoall's mark the bytes for each rank
// follow.
struct PlacedInput {
  int64_t at = -1;  // in the arena; with a stage: where in a cache line it begins
  uint64_t bytes = 0;
};

size_t PlacedBytes(const Signature& s, int ranks) {
  const bool pieces = s.kind == RequestKind::kAlltoall;
  return sizeof(PlacedInput) + (pieces ? static_cast<size_t>(ranks) * sizeof(uint64_t) : 0);
}

void WritePieces(const Request& request, int ranks, std::byte* room) {
  for (int peer = 0; peer < ranks; ++peer) {
    const uint64_t bytes = PieceFor(request, ranks, peer);
    memcpy(room + static_cast<size_t>(peer) * sizeof(bytes), &bytes, sizeof(bytes));
  }
}

struct Range {
  size_t begin = 0, end = 0;  // bytes
};

// Returns the range of a rank's input that nobody else needs.
Range OnlyForItself(const Request& request, const Direct& direct) {
  const Signature& s = request.signature;
  const int me = direct.index(), ranks = direct.size();
  if (s.kind == RequestKind::kAllgather) return {};
  if (s.kind == RequestKind::kReduceScatter) {
    const ScatteredRows mine(s.rows(), ranks, me);
    const size_t begin = static_cast<size_t>(mine.begin) * RowBytes(s);
    return {begin, begin + static_cast<size_t>(mine.count) * RowBytes(s)};
  }
  size_t begin = 0;
  for (int peer = 0; peer < me; ++peer) begin += PieceFor(request, ranks, peer);
  return {begin, begin + PieceFor(request, ranks, me)};
}

}  // namespace

void InPlace::Mark(LocalName* name) const {
  switch (name->pending->signature.kind) {
    case RequestKind::kAllreduce:
    case RequestKind::kBroadcast:
      return MarkBuffers(name);
    case RequestKind::kAllgather:
    case RequestKind::kReduceScatter:
    case RequestKind::kAlltoall:
      return MarkInput(name);
    default:
      return;
  }
}

absl::Status InPlace::Work(const LocalName& name) const {
  switch (name.pending->signature.kind) {
    case RequestKind::kAllreduce:
      return Sum(name);
    case RequestKind::kBroadcast:
      return Broadcast(name);
    default:
      return Fetch(name);
  }
}

void InPlace::Collect(const LocalName& name) const {
  const bool sums = name.pending->signature.kind == RequestKind::kAllreduce;
  if (sums && name.direct.staged) CollectOthersSlices(*name.pending);
}

void InPlace::MarkBuffers(LocalName* name) const {
  const Request& request = *name->pending;
  const bool sums = request.signature.kind == RequestKind::kAllreduce;
  if (!(sums ? ReducesInPlace(request.signature) : MayGoDirectly(request.signature))) {
    return;
  }
  const ArenaOffsets offsets = OffsetsInArena(request, places_->arenas());
  name->direct.staged = offsets.input < 0;
  if (name->direct.staged && !(sums && MayStage(request))) return;
  name->direct.in_place = true;
  name->direct.word = DirectWordInPlace(request.signature, name->direct.staged, sizeof(offsets));
  std::byte* const room = direct_->Room(name->direct.ticket, name->direct.word);
  if (!name->direct.staged) {
    memcpy(room, &offsets, sizeof(offsets));
    return;
  }
  const uint64_t skew = Direct::SkewOf(request.buffers.input);
  memcpy(room, &skew, sizeof(skew));
  StageOthersSlices(request);
}

void InPlace::StageOthersSlices(const Request& request) const {
  const Direct& direct = *direct_;
  std::byte* stage = direct.Stage(direct.index(), Direct::SkewOf(request.buffers.input));
  const auto* input = static_cast<const std::byte*>(request.buffers.input);
  ForOthersSlices(direct, request.signature,
                  [&](size_t at, size_t bytes) { CopyBytes(stage + at, input + at, bytes); });
}

void InPlace::CollectOthersSlices(const Request& request) const {
  const Direct& direct = *direct_;
  const std::byte* stage = direct.Stage(direct.index(), Direct::SkewOf(request.buffers.input));
  auto* output = static_cast<std::byte*>(request.buffers.output);
  ForOthersSlices(direct, request.signature,
                  [&](size_t at, size_t bytes) { CopyBytes(output + at, stage + at, bytes); });
}

absl::Status InPlace::FindBuffers(const LocalName& name, Buffers* buffers) const {
  const Direct& direct = *direct_;
  const Request& request = *name.pending;
  const size_t bytes = TensorBytes(request.signature);
  for (int peer = 0; peer < direct.size(); ++peer) {
    const void*& input = buffers->inputs[peer];
    void*& output = buffers->outputs[peer];
    if (peer == direct.index()) {
      input = request.buffers.input;
      output = request.buffers.output;
    } else if (name.direct.staged) {
      uint64_t skew = 0;
      memcpy(&skew, direct.TensorAt(name.direct.ticket, peer), sizeof(skew));
      input = output = direct.Stage(peer, skew);
    } else {
      ArenaOffsets at;
      memcpy(&at, direct.TensorAt(name.direct.ticket, peer), sizeof(at));
      const auto theirs = places_->Address(static_cast<size_t>(peer), at.input, bytes);
      if (!theirs.ok()) return theirs.status();
      const auto result = places_->Address(static_cast<size_t>(peer), at.output, bytes);
      if (!result.ok()) return result.status();
      input = *theirs;
      output = *result;
    }
  }
  return absl::OkStatus();
}

absl::Status InPlace::Sum(const LocalName& name) const {
  const Request& request = *name.pending;
  Buffers buffers;
  if (absl::Status found = FindBuffers(name, &buffers); !found.ok()) return found;
  const auto size = static_cast<size_t>(direct_->size());
  LogEntry entry;
  entry.signature = request.signature;
  entry.contributors = direct_->size();
  ReducePart part;
  part.input = request.buffers.input;
  part.output = request.buffers.output;
  part.count = request.signature.elements();
  part.host_inputs = {buffers.inputs, size};
  part.host_outputs = {buffers.outputs, size};
  return on_host_->SumOwnSlice(PlainArgs(entry, {&part, 1}));
}

// Each rank copies a slice of the root's tensor, into everyone's.
absl::Status InPlace::Broadcast(const LocalName& name) const {
  const Direct& direct = *direct_;
  const Request& request = *name.pending;
  Buffers buffers;
  if (absl::Status found = FindBuffers(name, &buffers); !found.ok()) return found;
  const auto* source = static_cast<const std::byte*>(buffers.inputs[request.root_index]);
  const size_t bytes = TensorBytes(request.signature);
  const bool streams = bytes >= stream_bytes_;
  const size_t end = EvenBound(bytes, direct.size(), direct.index() + 1);
  size_t at = EvenBound(bytes, direct.size(), direct.index());
  while (at < end) {
    if (absl::Status alive = waiter_->Check(); !alive.ok()) return alive;
    const size_t piece = std::min(end - at, kUncheckedBytes);
    for (int peer = 0; peer < direct.size(); ++peer) {
      auto* output = static_cast<std::byte*>(buffers.outputs[peer]);
      if (output != source) CopyOut(output + at, source + at, piece, streams);
    }
    at += piece;
  }
  return absl::OkStatus();
}

void InPlace::MarkInput(LocalName* name) const {
  const Request& request = *name->pending;
  const Signature& s = request.signature;
  if (!MayGoDirectly(s)) return;
  PlacedInput mine = {InputInArena(request, places_->arenas()), TensorBytes(s)};
  name->direct.staged = mine.at < 0;
  if (name->direct.staged && !MayStage(request)) return;
  Direct& direct = *direct_;
  name->direct.in_place = true;
  name->direct.word = DirectWordInPlace(s, name->direct.staged, PlacedBytes(s, direct.size()));
  if (name->direct.staged) mine.at = static_cast<int64_t>(Direct::SkewOf(request.buffers.input));
  std::byte* const room = direct.Room(name->direct.ticket, name->direct.word);
  memcpy(room, &mine, sizeof(mine));
  if (s.kind == RequestKind::kAlltoall) WritePieces(request, direct.size(), room + sizeof(mine));
  if (name->direct.staged) StageForOthers(request);
}

void InPlace::StageForOthers(const Request& request) const {
  const Direct& direct = *direct_;
  const auto* input = static_cast<const std::byte*>(request.buffers.input);
  std::byte* stage = direct.Stage(direct.index(), Direct::SkewOf(request.buffers.input));
  const Range mine = OnlyForItself(request, direct);
  CopyBytes(stage, input, mine.begin);
  CopyBytes(stage + mine.end, input + mine.end, TensorBytes(request.signature) - mine.end);
}

// Finds the part that this rank needs of the input that `peer` has placed.
absl::StatusOr<ShownInput> InPlace::FindInput(const LocalName& name, int peer) const {
  const Direct& direct = *direct_;
  const Request& request = *name.pending;
  const std::byte* mark = direct.TensorAt(name.direct.ticket, peer);
  PlacedInput theirs;
  memcpy(&theirs, mark, sizeof(theirs));
  ShownInput shown = {nullptr, theirs.bytes};
  if (peer == direct.index()) {
    shown.at = static_cast<const std::byte*>(request.buffers.input);
  } else if (name.direct.staged) {
    shown.at = direct.Stage(peer, static_cast<uint64_t>(theirs.at));
  } else {
    const auto seen = places_->Address(static_cast<size_t>(peer), theirs.at, theirs.bytes);
    if (!seen.ok()) return seen.status();
    shown.at = *seen;
  }
  if (request.signature.kind != RequestKind::kAlltoall) return shown;
  uint64_t pieces[kMaxLocalRanks];
  memcpy(pieces, mark + sizeof(theirs), sizeof(uint64_t) * (direct.index() + 1));
  for (int to = 0; to < direct.index(); ++to) shown.at += pieces[to];
  shown.bytes = pieces[direct.index()];
  return shown;
}

absl::Status InPlace::Fetch(const LocalName& name) const {
  const Signature& s = name.pending->signature;
  const int ranks = direct_->size();
  const size_t about = TensorBytes(s) * (s.kind == RequestKind::kAllgather ? ranks : 1);
  ShownInputs inputs(about >= stream_bytes_);
  for (int peer = 0; peer < ranks; ++peer) {
    const absl::StatusOr<ShownInput> input = FindInput(name, peer);
    if (!input.ok()) return input.status();
    inputs.Add(*input);
  }
  return ExecuteShown(*direct_, inputs, name.pending);
}

}  // namespace hvd::rt
