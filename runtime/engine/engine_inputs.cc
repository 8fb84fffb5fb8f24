// Allgathers, reduce-scatters and alltoalls in place: marks say where the inputs lie, and each rank
// makes its result of them by itself, in memory of whatever kind.
#include <cstring>

#include "runtime/collective/kernels/copy.h"
#include "runtime/engine/direct/arena_offsets.h"
#include "runtime/engine/direct/direct_execute.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd {
namespace {

// What a mark says of its rank's input. Of an alltoall the bytes for each rank follow.
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

// What nobody else needs of a rank's input.
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

void Engine::MarkInput(LocalName* name) {
  const Request& request = *name->pending;
  const Signature& s = request.signature;
  if (!Direct::MayGoDirectly(s)) return;
  PlacedInput mine = {InputInArena(request, world_->arenas()), TensorBytes(s)};
  name->staged = mine.at < 0;
  if (name->staged && !MayStage(request)) return;
  Direct& direct = *world_->direct();
  name->in_place = true;
  name->word = Direct::WordInPlace(s, name->staged, PlacedBytes(s, direct.size()));
  if (name->staged) mine.at = static_cast<int64_t>(Direct::SkewOf(request.input));
  std::byte* const room = direct.Room(name->ticket, name->word);
  memcpy(room, &mine, sizeof(mine));
  if (s.kind == RequestKind::kAlltoall) WritePieces(request, direct.size(), room + sizeof(mine));
  if (name->staged) StageForOthers(request);
}

void Engine::StageForOthers(const Request& request) {
  const Direct& direct = *world_->direct();
  const auto* input = static_cast<const std::byte*>(request.input);
  std::byte* stage = direct.Stage(direct.index(), Direct::SkewOf(request.input));
  const Range mine = OnlyForItself(request, direct);
  CopyBytes(stage, input, mine.begin);
  CopyBytes(stage + mine.end, input + mine.end, TensorBytes(request.signature) - mine.end);
}

// What this rank needs of the input that `peer` has placed; nothing when it lies outside its arena.
ShownInput Engine::FindInput(const LocalName& name, int peer) const {
  const Direct& direct = *world_->direct();
  const Request& request = *name.pending;
  const std::byte* mark = direct.TensorAt(name.ticket, peer);
  PlacedInput theirs;
  memcpy(&theirs, mark, sizeof(theirs));
  ShownInput shown = {nullptr, theirs.bytes};
  if (peer == direct.index()) {
    shown.at = static_cast<const std::byte*>(request.input);
  } else if (name.staged) {
    shown.at = direct.Stage(peer, static_cast<uint64_t>(theirs.at));
  } else {
    shown.at = world_->arenas()->Address(world_->LocalRankInJob(peer), theirs.at, theirs.bytes);
  }
  if (shown.at == nullptr || request.signature.kind != RequestKind::kAlltoall) return shown;
  uint64_t pieces[kMaxLocalRanks];
  memcpy(pieces, mark + sizeof(theirs), sizeof(uint64_t) * (direct.index() + 1));
  for (int to = 0; to < direct.index(); ++to) shown.at += pieces[to];
  shown.bytes = pieces[direct.index()];
  return shown;
}

absl::Status Engine::FetchInPlace(const LocalName& name) {
  const Signature& s = name.pending->signature;
  const int ranks = world_->direct()->size();
  const size_t about = TensorBytes(s) * (s.kind == RequestKind::kAllgather ? ranks : 1);
  ShownInputs inputs(about >= config_.thresholds.host.stream_bytes);
  for (int peer = 0; peer < ranks; ++peer) {
    const ShownInput input = FindInput(name, peer);
    if (input.at == nullptr) return OutsideArena();
    inputs.Add(input);
  }
  return ExecuteShown(*world_->direct(), inputs, name.pending);
}

}  // namespace hvd
