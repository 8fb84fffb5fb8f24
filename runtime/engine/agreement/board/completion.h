// SPDX-License-Identifier: Apache-2.0
// Completes an entry that the last rank of this host has marked: in a job of one host it is decided
// and appended to the log here, by whoever completed it; with several hosts it goes to the outbox,
// and comes into the log when the root has decided.
#pragma once

#include <string_view>

#include "runtime/engine/agreement/board/log.h"
#include "runtime/engine/agreement/board/outbox.h"
#include "runtime/engine/agreement/board/report.h"

namespace hvd::rt {

// Threads: any; but one entry is only whoever claimed its completion.
class BoardCompletion {
 public:
  BoardCompletion(const BoardRoom* room, BoardLog* log, BoardOutbox* outbox)
      : room_(*room), log_(*log), outbox_(*outbox) {}

  // Whoever claimed the completion calls this; nobody else touches the entry until it is in the
  // log. The entry must therefore come there, or the epoch ends. A join: under the lock.
  // `wants_number`: the name, if it shall have a direct one.
  void Complete(uint32_t number, MarkWord claimed, std::string_view wants_number = {});
  // Reads what the ranks of this host ask for in an entry that is claimed.
  Report ReadReport(uint32_t number) const;

 private:
  LogEntry Decide(uint32_t number, MarkWord claimed) const;
  int64_t RowsOf(uint32_t number, MarkWord claimed, int local_rank) const;

  const BoardRoom& room_;
  BoardLog& log_;
  BoardOutbox& outbox_;
};

}  // namespace hvd::rt
