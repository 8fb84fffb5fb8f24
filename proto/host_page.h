// The first page of an epoch's host memory: the words that the daemon and the workers of one host
// share. It is link B's message in memory: made by the daemon, mapped by all; everything after it
// belongs to libhvd.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "proto/pending_list.h"
#include "proto/rank_metrics.h"
#include "proto/trace_ring.h"

namespace hvd {

inline constexpr int kMaxLocalRanks = 128;
inline constexpr uint32_t kHostPageMagic = 0x31647668;  // "hvd1"

// Bell of a host. Whoever publishes something that a peer may sleep for rings it. Sleepers of a job
// of one host wait on `word` by futex; in a job of several hosts each sleeps on its own event fd
// beside UCX's.
struct Doorbell {
  alignas(64) std::atomic<uint32_t> word{0};            // grows by one a ring
  alignas(64) std::atomic<uint32_t> futex_sleepers{0};  // how many wait on `word`
  // One bit a local rank that sleeps on its event fd.
  alignas(64) std::atomic<uint64_t> fd_sleepers[kMaxLocalRanks / 64]{};
};

enum class RankState : uint32_t { kOutside = 0, kIdle = 1, kWaiting = 2, kLeft = 3 };

// What a rank is doing, for the verdict. Written by that rank alone; a torn read costs a garbled
// word in a message, nothing more, so there is no lock.
struct RankActivity {
  alignas(64) std::atomic<RankState> state{RankState::kOutside};
  std::atomic<uint64_t> calls{0};    // collectives finished
  std::atomic<uint64_t> pending{0};  // collectives submitted and not finished
  char last[104] = {};               // "allreduce 'grad.3' float32 [64,10]", nul-terminated
};

struct HostPage {
  uint32_t magic = kHostPageMagic;
  uint32_t local_size = 0;
  uint64_t bytes = 0;  // of the whole mapping
  uint64_t epoch = 0;
  // 0 while the epoch lives. Set once, after abort_text and abort_rank are complete, by the
  // daemon (or by a rank that found the epoch broken: claim by abort_claim first).
  alignas(64) std::atomic<uint32_t> aborted{0};
  std::atomic<uint32_t> abort_claim{0};
  // Not 0 while the timeline is on: ranks fill their rings. Set by the daemon.
  std::atomic<uint32_t> tracing{0};
  // Grows when the daemon wants to know what the ranks have pending (pending_list.h); then it
  // rings.
  std::atomic<uint32_t> question{0};
  std::atomic<int32_t> abort_rank{-1};  // AbortCause::rank
  char abort_text[1024] = {};
  Doorbell bell;
  RankActivity activity[kMaxLocalRanks];
};

// What lies behind the page, zeroed at first and touched only where it is used: each rank's
// counters and answers, one a region (a process set, and after it others), and its timeline.
struct RankWatch {
  RankActivity activity[kWatchedSets];  // of the sets besides the global one, which is in the page
  RankMetrics metrics[kWatchedSets];
  PendingArea pending[kWatchedSets];
  alignas(4096) TraceRing trace;
};
inline constexpr size_t kRankWatchAt = (sizeof(HostPage) + 4095) / 4096 * 4096;
inline constexpr size_t kHostPageBytes = kRankWatchAt + kMaxLocalRanks * sizeof(RankWatch);
// Where a rank is looked at in one process set.
struct WatchPlace {
  HostPage* page = nullptr;
  int local_rank = 0;  // of the process on its host
  int region = 0;      // the set's, which other sets may have had; 0: the global set's
  int32_t set = 0;     // the set's number, as users know it
};
inline RankWatch& WatchOf(HostPage* page, int local_rank) {
  return reinterpret_cast<RankWatch*>(reinterpret_cast<char*>(page) + kRankWatchAt)[local_rank];
}
inline RankActivity& ActivityAt(const WatchPlace& place) {
  return place.region == 0 ? place.page->activity[place.local_rank]
                           : WatchOf(place.page, place.local_rank).activity[place.region];
}

// Rings the bell: one increment, a full fence, and system calls only for those asleep. `event_fds`
// (one a local rank) may be null in a job of one host. Safe from any thread and process that maps
// the page.
void Ring(Doorbell* bell, const int* event_fds, int local_size);

// Why an epoch ends.
struct AbortCause {
  const char* text = "";  // for people; nobody decides anything by it
  // The rank whose doing it is although it lives on: it has left in order, by hvd_shutdown, while
  // others need it, or cannot go on. -1: none that is known.
  int rank = -1;
};

// Marks the epoch aborted with `cause` (first caller wins) and rings. Returns false if it was
// already.
bool AbortEpoch(HostPage* page, const AbortCause& cause, const int* event_fds);
inline bool AbortEpoch(HostPage* page, const char* cause, const int* event_fds) {
  return AbortEpoch(page, AbortCause{cause}, event_fds);
}

}  // namespace hvd
