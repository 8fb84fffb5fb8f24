// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/section.h"

#include <type_traits>

namespace hvd::rt {
namespace {

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

BoardSection CountsOf(const BoardShape& shape, int k) {
  BoardSection section;
  section.count = k == 0 ? shape.numbers : shape.numbers << (k - 1);
  section.first = k == 0 ? 1 : section.count + 1;
  return section;
}

// The one place that says what lies where in a section: take(pointer, count) for each part.
template <class Take>
void PlaceSection(const BoardShape& shape, BoardSection* section, Take take) {
  const size_t count = section->count;
  take(&section->buckets, 2 * count);
  take(&section->log, section->first - 1 + count);
  take(&section->batch_ends, section->first - 1 + count);
  take(&section->outstanding, shape.local_size * count);
  take(&section->entries, count);
  take(&section->marks, size_t{2} * shape.local_size * count);
  take(&section->rows, shape.world_size * count);
  take(&section->text, BoardSection::kTextBytes * count);
}

}  // namespace

size_t BoardSection::Bytes(const BoardShape& shape, int k) {
  BoardSection section = CountsOf(shape, k);
  size_t bytes = 0;
  PlaceSection(shape, &section, [&bytes](auto* pointer, size_t count) {
    bytes += RoundUp(sizeof(**pointer) * count);
  });
  return bytes;
}

BoardSection BoardSection::At(std::byte* at, const BoardShape& shape, int k) {
  BoardSection section = CountsOf(shape, k);
  PlaceSection(shape, &section, [&at](auto* pointer, size_t count) {
    *pointer = reinterpret_cast<std::remove_reference_t<decltype(*pointer)>>(at);
    at += RoundUp(sizeof(**pointer) * count);
  });
  return section;
}

}  // namespace hvd::rt
