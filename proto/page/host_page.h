// SPDX-License-Identifier: Apache-2.0
// The first page of an epoch's host memory: the words that the daemon and the workers of one host
// share. It is link B's message in memory: made by the daemon, mapped by all; everything after it
// belongs to libhvd.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/page/message_counts.h"
#include "proto/page/pending_list.h"
#include "proto/page/rank_metrics.h"
#include "proto/page/trace_ring.h"

namespace hvd {

inline constexpr int kMaxLocalRanks = 128;
inline constexpr uint32_t kHostPageMagic = 0x32647668;  // "hvd2"

// Bell of a host. Whoever publishes something that a peer may sleep for rings it. Sleepers of a job
// of one host wait on `word` by futex; in a job of several hosts each sleeps on its own event fd
// beside UCX's. The word has 32 bits, as futexes have, and may wrap: only that it has changed
// counts, between a look and the system call after it. In that time nobody rings 2^32 times: each
// ring is a system call itself while somebody is about to sleep.
struct Doorbell {
  alignas(64) std::atomic<uint32_t> word{0};            // grows by one a ring
  alignas(64) std::atomic<uint32_t> futex_sleepers{0};  // how many wait on `word`
  // One bit a local rank that sleeps on its event fd.
  alignas(64) std::atomic<uint64_t> fd_sleepers[kMaxLocalRanks / 64]{};
};

inline constexpr size_t kWorkWords = 16;  // of 8 characters each

enum class RankState : uint32_t { kOutside = 0, kIdle = 1, kWaiting = 2, kLeft = 3 };

// The work that somebody is at, named so that a reader may look at any time: `number` is not 0
// while there is work, and differs from that of the work before. A reader that finds the same
// number before and after has therefore read a whole name.
struct NotedWork {
  std::atomic<uint64_t> number{0};
  std::atomic<uint64_t> text[kWorkWords] = {};  // "allreduce 'grad.3' and 11 more", nul-terminated
};

// The activity of a rank in a process set, for the verdict, and for hvdd, which finds out without
// the rank's help whether it has come to a stop: hvdd looks now and then whether work, moves and
// calls are the same as before, so the rank needs no clock. Written by that rank alone; a torn read
// of `last` costs a garbled word in a message, nothing more, so there is no lock.
struct RankActivity {
  alignas(64) std::atomic<RankState> state{RankState::kOutside};
  std::atomic<int32_t> set{0};       // the process set's number, as users know it
  std::atomic<uint64_t> calls{0};    // collectives finished
  std::atomic<uint64_t> pending{0};  // collectives submitted and not done
  std::atomic<uint64_t> moves{0};    // grows with each thing that comes to pass inside a collective
  std::atomic<uint32_t> callers{0};  // threads of the program inside a call that waits
  // The work that the rank executes, of what all have agreed on; numbered by its executions.
  NotedWork work;
  // The oldest work that the rank has launched on its device and that has not finished there,
  // numbered by its launches. The rank itself may do something else meanwhile, or nothing.
  NotedWork device;
  char last[84] = {};  // "allreduce 'grad.3'", nul-terminated
};

// By the executor of the process set alone: what `text` names begins, or ends.
void BeginWork(NotedWork* work, uint64_t number, const char* text);
inline void EndWork(NotedWork* work) { work->number.store(0, std::memory_order_release); }
struct WorkSeen {
  uint64_t number = 0;  // 0: none, or it has just begun or ended
  std::string text;
};
WorkSeen ReadWork(const NotedWork& work);

// Why the epoch ends, in the words of one who ends it.
struct AbortNote {
  std::atomic<int32_t> rank{-1};       // AbortCause::rank
  std::atomic<int32_t> unreached{-1};  // AbortCause::unreached
  char text[1016] = {};
};
// The daemon's, and some for ranks, which take one each: one that dies or is stopped in the middle
// of its words holds up nobody.
inline constexpr uint32_t kAbortNotes = 4;

struct HostPage {
  uint32_t magic = kHostPageMagic;
  uint32_t local_size = 0;
  uint64_t bytes = 0;  // of the whole file: sparse, and far more than anybody maps
  uint64_t epoch = 0;
  // The bytes of the file, from its beginning, that the ranks have taken, and map where they need
  // them. Bytes that are taken later than at first are shared by their place in the file.
  std::atomic<uint64_t> taken{0};
  // Where the memory of a process set's region begins; 0: nobody has asked for it yet.
  std::atomic<uint64_t> region_at[kWatchedSets]{};
  // 0 while the epoch lives; then 1 + the number of the note that says why, which is complete. Set
  // once, by the daemon or by a rank that found the epoch broken.
  alignas(64) std::atomic<uint32_t> aborted{0};
  std::atomic<uint32_t> abort_notes_taken{0};  // by ranks
  // Not 0 while the timeline is on: ranks fill their rings. Set by the daemon.
  std::atomic<uint32_t> tracing{0};
  // Grows when the daemon wants to know what the ranks have pending (pending_list.h); then it
  // rings. Never 0 again; it may wrap: an answer is to the newest question, or to none.
  std::atomic<uint32_t> question{0};
  // Not 0 once the epoch's members are to change: the next commit or check says so. Set by the
  // daemon.
  std::atomic<uint32_t> change{0};
  AbortNote abort_notes[kAbortNotes];  // the first is the daemon's
  Doorbell bell;
  RankActivity activity[kMaxLocalRanks];
  // How much of each other arena of the host a rank has address space for. Each writes its own
  // before it says that it is connected; then all take the least.
  std::atomic<uint64_t> sees_of_arenas[kMaxLocalRanks]{};
};

// The memory of each rank behind the page, zeroed at first and touched only where it is used: its
// counters and answers, one a region (a process set, and after it others), and its timeline.
struct RankWatch {
  RankActivity activity[kWatchedSets];  // of the sets besides the global one, which is in the page
  RankMetrics metrics[kWatchedSets];
  PendingArea pending[kWatchedSets];
  MessageCounts messages[kWatchedSets];
  alignas(4096) TraceRing trace;
};
inline constexpr size_t kRankWatchAt = (sizeof(HostPage) + 4095) / 4096 * 4096;
// The page with what lies behind it, for so many ranks.
constexpr size_t HostPageBytes(int local_size) {
  return kRankWatchAt + static_cast<size_t>(local_size) * sizeof(RankWatch);
}

// The shape that an epoch's host memory begins with.
struct HostPageShape {
  uint64_t epoch = 0;
  int local_size = 1;
  uint64_t file_bytes = 0;
  uint64_t taken = 0;  // at first: at least HostPageBytes(local_size)
};
// In zeroed memory: the file's beginning.
HostPage* MakeHostPage(void* memory, const HostPageShape& shape);

// How long the file of a host's memory is, where no limit of files' sizes forbids it. Nothing of it
// takes memory or address space before it is used.
inline constexpr uint64_t kHostFileBytes = uint64_t{1} << 40;
// That, or as much as this process may.
uint64_t HostFileBytes();

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
  // The rank of another host to which nothing passes any more, as the transport here says, though
  // nobody has told of an end there. -1: none.
  int unreached = -1;
};

// Marks the epoch aborted with `cause` (the first that is complete counts) and rings. False:
// another was first, or all the ranks' notes are taken and none is complete; then the daemon ends
// the epoch. For ranks, from any thread.
bool AbortEpoch(HostPage* page, const AbortCause& cause, const int* event_fds);
inline bool AbortEpoch(HostPage* page, const char* cause, const int* event_fds) {
  return AbortEpoch(page, AbortCause{cause}, event_fds);
}
// The same for the daemon, from one thread: whatever the ranks have begun. False: it was aborted
// already.
bool AbortEpochAsDaemon(HostPage* page, const AbortCause& cause, const int* event_fds);

// Why the epoch was aborted. REQUIRES: it was. The text ends within the note.
AbortCause CauseOf(const HostPage& page);

}  // namespace hvd
