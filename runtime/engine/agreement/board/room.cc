// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/room.h"

#include <cstdio>
#include <new>
#include <string>

#include "base/printable.h"

namespace hvd::rt {
namespace {

std::string InSet(int32_t set) { return set == 0 ? "" : " in process set " + std::to_string(set); }

// " in 'name'"; nothing where there is no name. Takes no memory: what may not be shown is a
// question mark.
class PlaceText {
 public:
  explicit PlaceText(std::string_view name) {
    if (name.empty()) return;
    Append(" in '");
    while (!name.empty() && length_ < kMost) {
      const Character next = TakeCharacter(&name);
      Append(next.well_formed && next.printable ? next.bytes : "?");
    }
    Append("'");
  }
  const char* c_str() const { return text_; }

 private:
  static constexpr size_t kMost = 85;  // then a character of up to 4 bytes, and the quote

  void Append(std::string_view more) { length_ += more.copy(text_ + length_, more.size()); }

  char text_[kMost + 8] = {};
  size_t length_ = 0;
};

}  // namespace

absl::StatusOr<uint32_t> BoardRoom::WithRoom(std::string_view name, Attempt attempt) const {
  while (true) {
    absl::StatusOr<uint32_t> number;
    {
      BoardLock lock(*this);
      if (!lock.held()) return Aborted();
      number = attempt();
    }
    if (!number.ok() || IsNumber(*number)) return number;
    if (*number == kNoRoomLeft) return EndFull(name);
    if (absl::Status grown = Grow(); !grown.ok()) return grown;
  }
}

// The lock is held only to say where the new numbers are, never across the system calls.
absl::Status BoardRoom::Grow() const {
  const absl::Status grown = memory_.Grow([this](absl::FunctionRef<void()> tell) {
    BoardLock lock(*this);
    if (lock.held()) tell();
  });
  if (!grown.ok()) return EndWithoutMemory(grown);
  RingHost();  // the log goes on elsewhere
  return absl::OkStatus();
}

bool BoardRoom::FollowNew() const {
  const absl::Status mapped = memory_.Follow();
  return mapped.ok() || EndWithoutMemory(mapped).ok();
}

// Whoever publishes the section holds the lock until it has said where the ring begins. (So it is
// said where the caller has the lock.)
bool BoardRoom::FollowLog(int section) const {
  if (section == 0) return true;
  if (!Follow()) return false;
  if (memory_.HasLogBegin(section)) return true;
  const BoardLock published(*this);
  return published.held();
}

absl::Status BoardRoom::EndFull(std::string_view name) const {
  const int rank = RankHere(place_.local_rank);
  const std::string text =
      "rank " + std::to_string(rank) + " has no room for " + ShownName(name) + InSet(place_.set) +
      ": more than " + std::to_string(place_.most_pending) +
      " tensors would be pending at once on its host (HVD_MAX_PENDING); wait for some of them, or "
      "set it higher, the same on all ranks";
  return Abort({text.c_str(), rank});
}

absl::Status BoardRoom::EndWithoutMemory(const absl::Status& why) const {
  const int rank = RankHere(place_.local_rank);
  const std::string text = "rank " + std::to_string(rank) + " cannot have more than " +
                           std::to_string(memory_.numbers()) + " tensors pending at once" +
                           InSet(place_.set) + ": " + std::string(why.message());
  return Abort({text.c_str(), rank});
}

absl::Status BoardRoom::Aborted() const { return absl::AbortedError(CauseOf(*place_.page).text); }

absl::Status BoardRoom::Abort(const AbortCause& cause) const {
  AbortEpoch(place_.page, cause, place_.event_fds);
  // There may have been no note left for it.
  if (place_.page->aborted.load(std::memory_order_acquire) == 0) {
    return absl::AbortedError(cause.text);
  }
  return Aborted();
}

absl::Status BoardRoom::AbortLeft(int left_rank, std::string_view waiting_for) const {
  char text[sizeof(AbortNote::text)];
  snprintf(text, sizeof(text),
           "rank %d has left the job (shutdown) while other ranks wait for it in %s", left_rank,
           ShownName(waiting_for).c_str());
  return Abort({text, left_rank});
}

void BoardRoom::AbortThrown(const std::exception& error, std::string_view name) const {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const int rank = RankHere(place_.local_rank);
  char text[sizeof(AbortNote::text)];
  snprintf(text, sizeof(text), "rank %d cannot go on%s: %s", rank,
           PlaceText(PlainName(name)).c_str(),
           memory ? "out of memory; it needs more, or smaller tensors" : error.what());
  AbortEpoch(place_.page, {text, rank}, place_.event_fds);
}

}  // namespace hvd::rt
