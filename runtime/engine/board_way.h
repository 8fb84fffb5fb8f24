// SPDX-License-Identifier: Apache-2.0
// How requests go by the board: what this rank has marked there under which number, and the batches
// that come back. Everything that does not go directly goes this way.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/engine/agreement/board.h"
#include "runtime/engine/execution/batch_executor.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/request/local_name.h"

namespace hvd::rt {

class BoardWay {
 public:
  // Borrowed, and nobody else's to mark.
  BoardWay(Board* board, const HostArenas* arenas);
  ~BoardWay();

  // Room for a name, so that it cannot be refused later.
  absl::Status Keep(const LocalName& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return board_.Keep(*name.name);
  }
  absl::Status Mark(LocalName* name, bool wants_number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // The mark of a join. `owed`: see Board::Join.
  absl::Status Join(LocalName* name, absl::Span<const std::string_view> owed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

  // Whether there is a batch to execute, or one that only has to be closed.
  bool IsReady() const { return board_.HasNext() || board_.HasOpen(); }
  // The next batch's entries; none when there is no batch, or the epoch has ended (the wait says
  // so). `closed`: the others of the host are to be rung.
  std::vector<LogEntry> Next(bool* closed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor);
  // Whose request the entry is about, once; null: nobody's here.
  LocalName* Take(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // The batch has been executed: its names may be marked again.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(kExecutor) { board_.Advance(); }

  // Whether what is pending has been agreed on: it waits for nobody to ask for it.
  bool IsAgreed(const LocalName& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock) {
    return name.board.number != 0 && !name.direct.marked && board_.IsAgreed(name.board.number);
  }

 private:
  Board& board_;
  const HostArenas* const arenas_;
  // The name that is pending under each number; numbers beyond its end have none pending.
  std::vector<LocalName*> by_number_ ABSL_GUARDED_BY(kEngineLock);
};

}  // namespace hvd::rt
