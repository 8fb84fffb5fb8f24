#include "runtime/engine/agreement/board/memory.h"

namespace hvd {
namespace {

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t BytesBeforeChunks(const BoardShape& shape) {
  return RoundUp(sizeof(BoardHeader)) + RoundUp(sizeof(BoardPosition) * shape.local_size);
}

}  // namespace

BoardMemory::Chunk BoardMemory::CountsOf(const BoardShape& shape, int k) {
  Chunk chunk;
  chunk.count = k == 0 ? shape.numbers : shape.numbers << (k - 1);
  chunk.first = k == 0 ? 1 : chunk.count + 1;
  return chunk;
}

// The one place that says what lies where in a chunk: take(pointer, count) for each part.
template <class Take>
void BoardMemory::PlaceChunk(const BoardShape& shape, Chunk* chunk, Take take) {
  const size_t count = chunk->count;
  take(&chunk->buckets, 2 * count);
  take(&chunk->log, chunk->first - 1 + count);
  take(&chunk->batch_ends, chunk->first - 1 + count);
  take(&chunk->outstanding, shape.local_size * count);
  take(&chunk->entries, count);
  take(&chunk->marks, 2 * shape.local_size * count);
  take(&chunk->rows, shape.world_size * count);
  take(&chunk->text, kTextBytes * count);
}

size_t BoardMemory::ChunkBytes(const BoardShape& shape, int k) {
  Chunk chunk = CountsOf(shape, k);
  size_t bytes = 0;
  PlaceChunk(shape, &chunk, [&bytes](auto* pointer, size_t count) {
    bytes += RoundUp(sizeof(**pointer) * count);
  });
  return bytes;
}

size_t BoardMemory::Bytes(const BoardShape& shape) {
  return BytesBeforeChunks(shape) + ChunkBytes(shape, 0);
}

BoardMemory::BoardMemory(void* memory, const BoardShape& shape, SharedSpace* space)
    : shape_(shape), shift_(std::countr_zero(shape.numbers)), space_(space) {
  std::byte* const at = static_cast<std::byte*>(memory);
  header_ = reinterpret_cast<BoardHeader*>(at);
  positions_ = reinterpret_cast<BoardPosition*>(at + RoundUp(sizeof(BoardHeader)));
  SetChunk(0, at + BytesBeforeChunks(shape));
}

void BoardMemory::SetChunk(int k, std::byte* at) {
  Chunk chunk = CountsOf(shape_, k);
  PlaceChunk(shape_, &chunk, [&at](auto* pointer, size_t count) {
    *pointer = reinterpret_cast<std::remove_reference_t<decltype(*pointer)>>(at);
    at += RoundUp(sizeof(**pointer) * count);
  });
  chunks_[k] = std::move(chunk);
}

bool BoardMemory::MayGrow() const { return space_ != nullptr && chunks() < kMostBoardChunks; }

absl::Status BoardMemory::Grow(absl::FunctionRef<void(absl::FunctionRef<void()>)> locked) {
  const int k = chunks();
  if (k == kMostBoardChunks) return absl::OkStatus();
  const size_t bytes = ChunkBytes(shape_, k);
  const absl::StatusOr<uint64_t> place = space_->Take(bytes);
  if (!place.ok()) return place.status();
  bool published = false;
  locked([&] {
    kBoardLock.AssertHeld();
    if (chunks() != k) return;
    Publish(k, *place);
    published = true;
  });
  if (!published) space_->Give(*place, bytes);
  return absl::OkStatus();
}

absl::Status BoardMemory::Follow() {
  MutexLock lock(&mapping_);
  const uint32_t grown = header_->grown.load(std::memory_order_acquire);
  for (uint32_t k = mapped_.load(std::memory_order_relaxed) + 1; k <= grown; ++k) {
    const uint64_t place = header_->chunk_at[k].load(std::memory_order_acquire);
    auto mapped = space_->Map(place, ChunkBytes(shape_, static_cast<int>(k)));
    if (!mapped.ok()) return mapped.status();
    SetChunk(static_cast<int>(k), mapped->get());
    chunks_[k].mapped = *std::move(mapped);
    mapped_.store(k, std::memory_order_release);
  }
  return absl::OkStatus();
}

// In this order: who appends to the ring finds where it is, and only what
// completes after its beginning can have one of its numbers.
void BoardMemory::Publish(int chunk, uint64_t place) {
  header_->chunk_at[chunk].store(place, std::memory_order_release);
  header_->grown.store(static_cast<uint32_t>(chunk), std::memory_order_release);
  const LogPlace begin(header_->log_end.fetch_add(LogPlace::kNextChunk, std::memory_order_acq_rel));
  header_->log_begin[chunk].store(begin.seq() + 1, std::memory_order_release);
}

void BoardMemory::GiveGrown() {
  const uint32_t grown = header_->grown.load(std::memory_order_acquire);
  for (uint32_t k = 1; k <= grown; ++k) {
    space_->Give(header_->chunk_at[k].load(), ChunkBytes(shape_, static_cast<int>(k)));
  }
}

}  // namespace hvd
