// SPDX-License-Identifier: Apache-2.0
// This rank's names that have a direct number, but turns; gives numbers up that others need more.
// Under the engine's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/engine/agreement/board.h"
#include "runtime/engine/direct/direct.h"
#include "runtime/engine/request/engine_lock.h"
#include "runtime/engine/request/local_name.h"

namespace hvd::rt {

class NumberedNames {
 public:
  // Both are borrowed. `direct` null: no name ever gets a number. A name with a number keeps room
  // on the board.
  NumberedNames(Direct* direct, Board* board) : direct_(direct), board_(*board) {}

  // The name, which has no number, has its ticket afterwards, if there is one for it.
  void Find(LocalName* name, uint64_t round);
  // The log has given the name a number.
  void Add(LocalName* name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);
  // Makes room for a name that comes again every `distance` submissions: those that rest for twice
  // as long give theirs up. `submissions`: this rank's until now.
  void GiveUpIdle(uint64_t distance, uint64_t submissions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kEngineLock);

 private:
  Direct* const direct_;
  Board& board_;
  std::vector<LocalName*> names_;  // none of them was used last before `oldest_use_`
  uint64_t oldest_use_ = 0;
};

}  // namespace hvd::rt
