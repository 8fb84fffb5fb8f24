// Where a board's numbers come from: more of them when all are outstanding, up to the limit.
#include "base/printable.h"
#include "runtime/engine/agreement/board_lock.h"

namespace hvd {
namespace {

std::string InSet(int32_t set) { return set == 0 ? "" : " in process set " + std::to_string(set); }

}  // namespace

// Calls `attempt` under the lock, and again with more numbers while it finds none. Others wait for
// what finds none at last: then the epoch ends.
absl::StatusOr<uint32_t> Board::WithRoom(std::string_view name, Attempt attempt) {
  while (true) {
    absl::StatusOr<uint32_t> number;
    {
      Lock lock(*this);
      if (!lock.held()) return absl::AbortedError(CauseOf(*place_.page).text);
      number = attempt();
    }
    if (!number.ok() || (*number != kNone && *number != kFull)) return number;
    if (*number == kFull) return EndFull(name);
    if (absl::Status grown = Grow(); !grown.ok()) return grown;
  }
}

// The lock is held only to say where the new numbers are, never across the system calls.
absl::Status Board::Grow() {
  const absl::Status grown = memory_.Grow([this](absl::FunctionRef<void()> tell) {
    Lock lock(*this);
    if (lock.held()) tell();
  });
  if (!grown.ok()) return EndWithoutMemory(grown);
  RingHost();  // the log goes on elsewhere
  return absl::OkStatus();
}

// So that every number and place in the log can be looked at that this thread can have heard of.
// False: it cannot, and the epoch has ended.
bool Board::FollowNew() const {
  const absl::Status mapped = memory_.Follow();
  return mapped.ok() || EndWithoutMemory(mapped).ok();
}

// For who has a place in the chunk's ring: others will look for it there. Whoever publishes the
// chunk holds the lock until it has said where the ring begins. (So it is said where the caller has
// the lock.)
bool Board::FollowLog(int chunk) const {
  if (chunk == 0) return true;
  if (!Follow()) return false;
  if (memory_.HasLogBegin(chunk)) return true;
  const Lock published(*this);
  return published.held();
}

absl::Status Board::EndFull(std::string_view name) const {
  const int rank = RankHere(place_.local_rank);
  const std::string text =
      "rank " + std::to_string(rank) + " has no room for " + ShownName(name) + InSet(place_.set) +
      ": more than " + std::to_string(place_.most_pending) +
      " tensors would be pending at once on its host (HVD_MAX_PENDING); wait for some of them, or "
      "set it higher, the same on all ranks";
  return Abort({text.c_str(), rank});
}

absl::Status Board::EndWithoutMemory(const absl::Status& why) const {
  const int rank = RankHere(place_.local_rank);
  const std::string text = "rank " + std::to_string(rank) + " cannot have more than " +
                           std::to_string(memory_.numbers()) + " tensors pending at once" +
                           InSet(place_.set) + ": " + std::string(why.message());
  return Abort({text.c_str(), rank});
}

}  // namespace hvd
