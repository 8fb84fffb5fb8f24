// SPDX-License-Identifier: Apache-2.0
// The entries that a host's ranks have completed and its leader has not taken yet, in a job of
// several hosts. Anybody pushes, without the lock; the leader takes.
//
// It is a list through the entries, since each number is in flight once at most, and through the
// ranks' positions, since each local rank leaves once.
#pragma once

#include <optional>
#include <utility>

#include "runtime/engine/agreement/board/room.h"

namespace hvd::rt {

// Threads: IsEmpty and Take: one of the leader's rank. The rest: any.
class BoardOutbox {
 public:
  // A complete entry, or a local rank that has left.
  struct Item {
    uint32_t number = 0;  // 0: it is a leave
    int left_rank = 0;
  };

  explicit BoardOutbox(const BoardRoom* room) : room_(*room) {}

  void PushComplete(uint32_t number) { Push(number); }
  void PushLeft(int local_rank) { Push(kLeftFlag | static_cast<uint32_t>(local_rank)); }

  bool IsEmpty() const {
    return taken_ == 0 && room_.header().outbox.load(std::memory_order_acquire) == 0;
  }
  // Takes the item that was pushed first. None also when the epoch has ended.
  std::optional<Item> Take() {
    if (IsEmpty()) return std::nullopt;
    if (taken_ == 0) {
      uint32_t pushed = room_.header().outbox.exchange(0, std::memory_order_acq_rel);
      if (!room_.Follow()) return std::nullopt;
      while (pushed != 0) {
        const uint32_t before = std::exchange(Next(pushed), taken_);
        taken_ = std::exchange(pushed, before);
      }
    }
    const uint32_t link = std::exchange(taken_, Next(taken_));
    if ((link & kLeftFlag) == 0) return Item{link, 0};
    return Item{0, static_cast<int>(link & ~kLeftFlag)};
  }

 private:
  // A link of the list is a number, or a local rank with this flag.
  static constexpr uint32_t kLeftFlag = 0x80000000u;

  uint32_t& Next(uint32_t link) const {
    if ((link & kLeftFlag) == 0) return room_.memory().entry(link).next_out;
    return room_.memory().position(static_cast<int>(link & ~kLeftFlag)).next_out;
  }
  void Push(uint32_t link) {
    std::atomic<uint32_t>& outbox = room_.header().outbox;
    uint32_t before = outbox.load(std::memory_order_relaxed);
    do {
      Next(link) = before;
    } while (!outbox.compare_exchange_weak(before, link, std::memory_order_release,
                                           std::memory_order_relaxed));
  }

  const BoardRoom& room_;
  uint32_t taken_ = 0;  // the leader's: taken out of the header's list, oldest first
};

}  // namespace hvd::rt
