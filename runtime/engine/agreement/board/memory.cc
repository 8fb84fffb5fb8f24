// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/memory.h"

namespace hvd {
namespace {

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t BytesBeforeSections(const BoardShape& shape) {
  return RoundUp(sizeof(BoardHeader)) + RoundUp(sizeof(BoardPosition) * shape.local_size);
}

}  // namespace

BoardMemory::Section BoardMemory::CountsOf(const BoardShape& shape, int k) {
  Section section;
  section.count = k == 0 ? shape.numbers : shape.numbers << (k - 1);
  section.first = k == 0 ? 1 : section.count + 1;
  return section;
}

// The one place that says what lies where in a section: take(pointer, count) for each part.
template <class Take>
void BoardMemory::PlaceSection(const BoardShape& shape, Section* section, Take take) {
  const size_t count = section->count;
  take(&section->buckets, 2 * count);
  take(&section->log, section->first - 1 + count);
  take(&section->batch_ends, section->first - 1 + count);
  take(&section->outstanding, shape.local_size * count);
  take(&section->entries, count);
  take(&section->marks, size_t{2} * shape.local_size * count);
  take(&section->rows, shape.world_size * count);
  take(&section->text, kTextBytes * count);
}

size_t BoardMemory::SectionBytes(const BoardShape& shape, int k) {
  Section section = CountsOf(shape, k);
  size_t bytes = 0;
  PlaceSection(shape, &section, [&bytes](auto* pointer, size_t count) {
    bytes += RoundUp(sizeof(**pointer) * count);
  });
  return bytes;
}

size_t BoardMemory::Bytes(const BoardShape& shape) {
  return BytesBeforeSections(shape) + SectionBytes(shape, 0);
}

BoardMemory::BoardMemory(void* memory, const BoardShape& shape, SharedSpace* space)
    : shape_(shape), shift_(std::countr_zero(shape.numbers)), space_(space) {
  std::byte* const at = static_cast<std::byte*>(memory);
  header_ = reinterpret_cast<BoardHeader*>(at);
  positions_ = reinterpret_cast<BoardPosition*>(at + RoundUp(sizeof(BoardHeader)));
  SetSection(0, at + BytesBeforeSections(shape));
}

void BoardMemory::SetSection(int k, std::byte* at) {
  Section section = CountsOf(shape_, k);
  PlaceSection(shape_, &section, [&at](auto* pointer, size_t count) {
    *pointer = reinterpret_cast<std::remove_reference_t<decltype(*pointer)>>(at);
    at += RoundUp(sizeof(**pointer) * count);
  });
  sections_[k] = std::move(section);
}

bool BoardMemory::MayGrow() const { return space_ != nullptr && sections() < kMostBoardSections; }

absl::Status BoardMemory::Grow(absl::FunctionRef<void(absl::FunctionRef<void()>)> locked) {
  const int k = sections();
  if (k == kMostBoardSections) return absl::OkStatus();
  const size_t bytes = SectionBytes(shape_, k);
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
    auto mapped = space_->Map(place, SectionBytes(shape_, static_cast<int>(k)));
    if (!mapped.ok()) return mapped.status();
    SetSection(static_cast<int>(k), mapped->get());
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
    space_->Give(header_->section_at[k].load(), SectionBytes(shape_, static_cast<int>(k)));
  }
}

}  // namespace hvd
