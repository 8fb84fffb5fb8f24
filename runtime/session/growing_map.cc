// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/growing_map.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>

#include "runtime/session/arena_space.h"

namespace hvd::rt {
namespace {

constexpr uint64_t kPage = ArenaSpace::kPage;
constexpr uint64_t kHugePage = ArenaSpace::kHugePage;

uint64_t Up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

}  // namespace

GrowingMap::~GrowingMap() {
  for (View* view = &first_; view != nullptr;) {
    View* const next = view->next.load();
    if (view->bytes.load() > 0) munmap(view->memory, view->bytes.load());
    if (view != &first_) delete view;
    view = next;
  }
}

void GrowingMap::SetFile(const ApartFile& file) {
  const MutexLock lock(&mutex_);
  file_ = file;
}

uint64_t GrowingMap::mapped_bytes() const {
  uint64_t bytes = 0;
  for (const View* view = &first_; view != nullptr; view = view->next.load(kAcquire)) {
    bytes += view->bytes.load(kAcquire);
  }
  return bytes;
}

std::byte* GrowingMap::Show(uint64_t at, uint64_t bytes, MapRefusal* why) {
  if (std::byte* seen = Find(at, bytes); seen != nullptr) return seen;
  const MutexLock lock(&mutex_);
  *why = {};
  if (at >= file_.bytes || bytes > file_.bytes - at) return nullptr;
  if (std::byte* seen = Find(at, bytes); seen != nullptr) return seen;  // another thread was first
  const uint64_t end = std::min(Up(at + std::max<uint64_t>(bytes, 1), kPage), file_.bytes);
  return GrowNewest(at, end, why) || AddView(at, end, why) ? Find(at, bytes) : nullptr;
}

// How far to map from `from` on, where `end` is needed.
uint64_t GrowingMap::Generous(uint64_t from, uint64_t end) const {
  const uint64_t stretch = std::clamp(newest_->bytes.load(), kLeastStretch, kMostStretch);
  return std::min(Up(std::max(end, from + stretch), kHugePage), file_.bytes);
}

// Not over a wide gap: what lies in it may never be met.
bool GrowingMap::GrowNewest(uint64_t at, uint64_t end, MapRefusal* why) {
  View& view = *newest_;
  const uint64_t seen = view.bytes.load();
  const uint64_t from = view.begin + seen;
  if (seen == 0 || at < view.begin || (at > from && at - from > kMostStretch)) return false;
  for (const uint64_t upto : {Generous(from, end), end}) {
    if (MapBehind(file_, view.memory + seen, from, upto - from)) {
      Advise(view.memory + seen, upto - from);
      view.bytes.store(upto - view.begin, std::memory_order_release);
      return true;
    }
    *why = {errno, upto - from};
  }
  return false;
}

bool GrowingMap::AddView(uint64_t at, uint64_t end, MapRefusal* why) {
  const bool is_first = newest_->bytes.load() == 0;
  std::unique_ptr<View> made(is_first ? nullptr : new (std::nothrow) View);
  View* const view = is_first ? newest_ : made.get();
  const uint64_t begin = at / kHugePage * kHugePage;
  *why = {ENOMEM, end - begin};
  if (view == nullptr) return false;
  for (const uint64_t upto : {Generous(begin, end), end}) {
    void* const memory = MapApart(file_, begin, upto - begin);
    *why = {errno, upto - begin};
    if (memory == nullptr) continue;
    Advise(memory, upto - begin);
    view->memory = static_cast<std::byte*>(memory);
    view->begin = begin;
    view->bytes.store(upto - begin, std::memory_order_release);
    if (is_first) return true;
    newest_->next.store(made.release(), std::memory_order_release);
    newest_ = view;
    return true;
  }
  return false;
}

// Huge pages where the system's shmem_enabled lets it; a core file would fill the holes.
void GrowingMap::Advise(void* memory, uint64_t bytes) const {
  madvise(memory, bytes, MADV_HUGEPAGE);
  madvise(memory, bytes, MADV_DONTDUMP);
  if (children_ == InChildren::kGone) madvise(memory, bytes, MADV_DONTFORK);
}

void GrowingMap::DetachChild() {
  for (const View* view = &first_; view != nullptr; view = view->next.load()) {
    const uint64_t bytes = view->bytes.load();
    if (bytes == 0) continue;
    mmap(view->memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
         file_.fd, static_cast<off_t>(view->begin));
    madvise(view->memory, bytes, MADV_DONTDUMP);
  }
}

}  // namespace hvd::rt
