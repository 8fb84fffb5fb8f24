// SPDX-License-Identifier: Apache-2.0
// A shared file of which this process maps as much as it meets, so that its address space grows
// with what tensors need. It is seen in views: mostly one, which grows in place by stretches.
// Where something else is in the way, or what is met lies far behind, there is another view; the
// old ones stay as long as the map, and so does every address that was found.
//
// Threads: any. Find and At take no lock, and may run while another thread's view grows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"
#include "runtime/session/apart.h"

namespace hvd::rt {

// The system gives no more address space.
struct MapRefusal {
  int error = 0;  // errno; 0: the bytes lie outside the file
  uint64_t bytes = 0;
};

class GrowingMap {
 public:
  enum class InChildren { kSeen, kGone };  // after fork

  // Beyond what is needed: as much as is mapped already, within these.
  static constexpr uint64_t kLeastStretch = uint64_t{32} << 20;
  static constexpr uint64_t kMostStretch = uint64_t{256} << 20;

  explicit GrowingMap(InChildren children) : children_(children) {}
  // All views end.
  ~GrowingMap();
  GrowingMap(const GrowingMap&) = delete;
  GrowingMap& operator=(const GrowingMap&) = delete;

  // Once, before the first Show. The descriptor is borrowed, and the file never shrinks.
  void SetFile(const ApartFile& file);

  // Where these bytes of the file are seen; null when not all of them are in one view. The same
  // bytes are always found at the same address.
  std::byte* Find(uint64_t at, uint64_t bytes) const {
    for (const View* view = &first_; view != nullptr; view = view->next.load(kAcquire)) {
      const uint64_t seen = view->bytes.load(kAcquire);
      if (seen == 0) break;  // the first, which another thread may be making
      const uint64_t in_view = at - view->begin;
      if (in_view < seen && bytes <= seen - in_view) return view->memory + in_view;
    }
    return nullptr;
  }
  // The same, mapped if they are not. Null says why.
  std::byte* Show(uint64_t at, uint64_t bytes, MapRefusal* why);
  // Which bytes of the file this memory is; -1 when it isn't in one view as a whole.
  int64_t At(const void* memory, uint64_t bytes) const {
    for (const View* view = &first_; view != nullptr; view = view->next.load(kAcquire)) {
      const uint64_t seen = view->bytes.load(kAcquire);
      if (seen == 0) break;
      const uint64_t in_view =
          reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(view->memory);
      if (in_view < seen && bytes <= seen - in_view) {
        return static_cast<int64_t>(view->begin + in_view);
      }
    }
    return -1;
  }
  uint64_t mapped_bytes() const;

  // In a forked child: every view becomes its own copy. Only mmap and stores, as the child of a
  // process with threads may.
  void DetachChild() ABSL_NO_THREAD_SAFETY_ANALYSIS;  // the lock may be held for ever

 private:
  static constexpr std::memory_order kAcquire = std::memory_order_acquire;
  struct View {
    std::byte* memory = nullptr;  // this and `begin`: written before `bytes` and what points here
    uint64_t begin = 0;           // in the file
    std::atomic<uint64_t> bytes{0};
    std::atomic<View*> next{nullptr};
  };
  bool GrowNewest(uint64_t at, uint64_t end, MapRefusal* why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AddView(uint64_t at, uint64_t end, MapRefusal* why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t Generous(uint64_t from, uint64_t end) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Advise(void* memory, uint64_t bytes) const;

  const InChildren children_;
  View first_;  // of no bytes before the first Show
  Mutex mutex_;
  ApartFile file_ ABSL_GUARDED_BY(mutex_);
  View* newest_ ABSL_GUARDED_BY(mutex_) = &first_;  // only this one grows
};

}  // namespace hvd::rt
