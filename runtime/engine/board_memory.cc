#include "runtime/engine/board_memory.h"

namespace hvd {
namespace {

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

// The one place that says what lies where: take(pointer, count) for each part.
template <class Take>
void BoardMemory::Place(Take take) {
  const size_t numbers = shape_.entries + 1;  // 1..entries
  take(&header_, 1);
  take(&positions_, shape_.local_size);
  take(&buckets_, 2 * shape_.entries);
  take(&batch_ends_, 2 * shape_.entries);
  take(&outbox_, shape_.entries + shape_.local_size);
  take(&log_, shape_.entries);
  take(&outstanding_, shape_.local_size * numbers);
  take(&entries_, numbers);
  take(&marks_, 2 * shape_.local_size * numbers);
  take(&rows_, shape_.world_size * numbers);
  take(&text_, kTextBytes * numbers);
}

size_t BoardMemory::Bytes(const BoardShape& shape) {
  BoardMemory memory(nullptr, shape);
  size_t bytes = 0;
  memory.Place(
      [&bytes](auto* pointer, size_t count) { bytes += RoundUp(sizeof(**pointer) * count); });
  return bytes;
}

BoardMemory::BoardMemory(void* memory, const BoardShape& shape) : shape_(shape) {
  if (memory == nullptr) return;  // only asked for its size
  std::byte* at = static_cast<std::byte*>(memory);
  Place([&at](auto* pointer, size_t count) {
    *pointer = reinterpret_cast<std::remove_reference_t<decltype(*pointer)>>(at);
    at += RoundUp(sizeof(**pointer) * count);
  });
}

}  // namespace hvd
