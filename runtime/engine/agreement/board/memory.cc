// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/memory.h"

namespace hvd::rt {
namespace {

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t BytesBeforeSections(const BoardShape& shape) {
  return RoundUp(sizeof(BoardHeader)) + RoundUp(sizeof(BoardPosition) * shape.local_size);
}

}  // namespace

size_t BoardMemory::Bytes(const BoardShape& shape) {
  return BytesBeforeSections(shape) + BoardSection::Bytes(shape, 0);
}

BoardMemory::BoardMemory(void* memory, const BoardShape& shape, SharedSpace* space)
    : shape_(shape), shift_(std::countr_zero(shape.numbers)), space_(space) {
  std::byte* const at = static_cast<std::byte*>(memory);
  header_ = reinterpret_cast<BoardHeader*>(at);
  positions_ = reinterpret_cast<BoardPosition*>(at + RoundUp(sizeof(BoardHeader)));
  sections_[0] = BoardSection::At(at + BytesBeforeSections(shape), shape, 0);
}

bool BoardMemory::MayGrow() const { return space_ != nullptr && sections() < kMostBoardSections; }

absl::Status BoardMemory::Grow(absl::FunctionRef<void(absl::FunctionRef<void()>)> locked) {
  const int k = sections();
  if (k == kMostBoardSections) return absl::OkStatus();
  const size_t bytes = BoardSection::Bytes(shape_, k);
  const absl::StatusOr<uint64_t> place = space_->Take(bytes);
  if (!place.ok()) return place.status();
  bool published = false;
  locked([&] {
    kBoardLock.AssertHeld();
    if (sections() != k) return;
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
    const uint64_t place = header_->section_at[k].load(std::memory_order_acquire);
    auto mapped = space_->Map(place, BoardSection::Bytes(shape_, static_cast<int>(k)));
    if (!mapped.ok()) return mapped.status();
    sections_[k] = BoardSection::At(mapped->get(), shape_, static_cast<int>(k));
    sections_[k].mapped = *std::move(mapped);
    mapped_.store(k, std::memory_order_release);
  }
  return absl::OkStatus();
}

// In this order: who appends to the ring finds where it is, and only what
// completes after its beginning can have one of its numbers.
void BoardMemory::Publish(int section, uint64_t place) {
  header_->section_at[section].store(place, std::memory_order_release);
  header_->grown.store(static_cast<uint32_t>(section), std::memory_order_release);
  const LogPlace begin(
      header_->log_end.fetch_add(LogPlace::kNextSection, std::memory_order_acq_rel));
  header_->log_begin[section].store(begin.seq() + 1, std::memory_order_release);
}

void BoardMemory::GiveGrown() {
  const uint32_t grown = header_->grown.load(std::memory_order_acquire);
  for (uint32_t k = 1; k <= grown; ++k) {
    space_->Give(header_->section_at[k].load(), BoardSection::Bytes(shape_, static_cast<int>(k)));
  }
}

}  // namespace hvd::rt
