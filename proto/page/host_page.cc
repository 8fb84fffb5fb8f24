// SPDX-License-Identifier: Apache-2.0
#include "proto/page/host_page.h"

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <new>

namespace hvd {

HostPage* MakeHostPage(void* memory, const HostPageShape& shape) {
  auto* page = new (memory) HostPage;
  page->local_size = static_cast<uint32_t>(shape.local_size);
  page->bytes = shape.file_bytes;
  page->epoch = shape.epoch;
  page->taken.store(shape.taken);
  return page;
}

uint64_t HostFileBytes() {
  struct rlimit limit {};
  const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? std::min<uint64_t>(limit.rlim_cur, kHostFileBytes) : kHostFileBytes;
}

void Ring(Doorbell* bell, const int* event_fds, int local_size) {
  bell->word.fetch_add(1, std::memory_order_seq_cst);
  // The increment is a full fence on the sleeper's side too: it counts itself first, then looks at
  // the word.
  if (bell->futex_sleepers.load(std::memory_order_seq_cst) != 0) {
    syscall(SYS_futex, &bell->word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  if (event_fds == nullptr) return;
  for (int first = 0; first < local_size; first += 64) {
    uint64_t asleep = bell->fd_sleepers[first / 64].load(std::memory_order_seq_cst);
    while (asleep != 0) {
      const int rank = first + __builtin_ctzll(asleep);
      asleep &= asleep - 1;
      const uint64_t one = 1;
      // EAGAIN means the counter is full, so the sleeper wakes anyway.
      [[maybe_unused]] const ssize_t n = write(event_fds[rank], &one, sizeof(one));
    }
  }
}

namespace {

// The note's number is the caller's alone.
bool Publish(HostPage* page, uint32_t number, const AbortCause& cause, const int* event_fds) {
  AbortNote& note = page->abort_notes[number];
  snprintf(note.text, sizeof(note.text), "%s", cause.text);
  note.rank.store(cause.rank, std::memory_order_relaxed);
  note.unreached.store(cause.unreached, std::memory_order_relaxed);
  uint32_t alive = 0;
  if (!page->aborted.compare_exchange_strong(alive, number + 1)) return false;
  Ring(&page->bell, event_fds, static_cast<int>(page->local_size));
  return true;
}

}  // namespace

bool AbortEpoch(HostPage* page, const AbortCause& cause, const int* event_fds) {
  uint32_t taken = page->abort_notes_taken.load();
  do {
    if (page->aborted.load() != 0 || taken >= kAbortNotes - 1) return false;
  } while (!page->abort_notes_taken.compare_exchange_weak(taken, taken + 1));
  return Publish(page, taken + 1, cause, event_fds);
}

bool AbortEpochAsDaemon(HostPage* page, const AbortCause& cause, const int* event_fds) {
  return page->aborted.load() == 0 && Publish(page, 0, cause, event_fds);
}

AbortCause CauseOf(const HostPage& page) {
  // Whoever scribbles over the page gets words, not a crash.
  const uint32_t aborted = page.aborted.load(std::memory_order_acquire);
  const AbortNote& note = page.abort_notes[aborted == 0 ? 0 : (aborted - 1) % kAbortNotes];
  return {note.text, note.rank.load(std::memory_order_relaxed),
          note.unreached.load(std::memory_order_relaxed)};
}

void BeginWork(NotedWork* work, uint64_t number, const char* text) {
  // After the end of the last work, which readers must see first.
  std::atomic_thread_fence(std::memory_order_release);
  uint64_t words[kWorkWords] = {};
  strncpy(reinterpret_cast<char*>(words), text, sizeof(words) - 1);
  for (size_t i = 0; i < kWorkWords; ++i) {
    work->text[i].store(words[i], std::memory_order_relaxed);
  }
  work->number.store(number, std::memory_order_release);
}

WorkSeen ReadWork(const NotedWork& work) {
  WorkSeen seen;
  uint64_t words[kWorkWords + 1] = {};  // ends within, whoever has written it
  for (int tries = 0; tries < 3 && seen.number == 0; ++tries) {
    const uint64_t before = work.number.load(std::memory_order_acquire);
    for (size_t i = 0; i < kWorkWords; ++i) {
      words[i] = work.text[i].load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (work.number.load(std::memory_order_relaxed) == before) seen.number = before;
    if (before == 0) break;
  }
  if (seen.number != 0) seen.text = reinterpret_cast<const char*>(words);
  return seen;
}

}  // namespace hvd
