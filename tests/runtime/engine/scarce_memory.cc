// SPDX-License-Identifier: Apache-2.0
// In a file of its own: where the compiler sees both, it takes free for a mismatch of new.
#include "tests/runtime/engine/scarce_memory.h"

#include <cstdlib>
#include <new>

namespace {

thread_local int allocations_left = -1;  // -1: as many as there are

}  // namespace

void* operator new(size_t bytes) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  void* const memory = malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// Without this, a sanitizer's own is called, whose memory may not end in the delete below.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }

namespace hvd::rt::test {

ScarceMemory::ScarceMemory(int allocations) { allocations_left = allocations; }
ScarceMemory::~ScarceMemory() { allocations_left = -1; }

}  // namespace hvd::rt::test
