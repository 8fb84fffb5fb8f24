// The board's short lock. Only the board's own files include this.
#pragma once

#include "runtime/engine/board.h"
#include "runtime/engine/shared_lock.h"

namespace hvd {

class Board::Lock : public SharedLock {
 public:
  explicit Lock(const Board& board) : SharedLock(&board.memory_.header().lock, board.place_.page) {}
};

}  // namespace hvd
