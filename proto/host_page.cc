#include "proto/host_page.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>

namespace hvd {

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

bool AbortEpoch(HostPage* page, const AbortCause& cause, const int* event_fds) {
  uint32_t unclaimed = 0;
  if (!page->abort_claim.compare_exchange_strong(unclaimed, 1)) return false;
  snprintf(page->abort_text, sizeof(page->abort_text), "%s", cause.text);
  page->abort_rank.store(cause.rank, std::memory_order_relaxed);
  page->aborted.store(1, std::memory_order_seq_cst);
  Ring(&page->bell, event_fds, static_cast<int>(page->local_size));
  return true;
}

}  // namespace hvd
