// The board's short lock. Only the board's own files include this.
#pragma once

#include "runtime/engine/agreement/board.h"
#include "runtime/engine/agreement/shared_lock.h"

namespace hvd {

// Whoever has it finds every number mapped; for that it is given up again where the board has grown
// meanwhile: mapping takes a system call.
class Board::Lock {
 public:
  explicit Lock(const Board& board) {
    while (board.Follow()) {
      lock_.Take(&board.memory_.header().lock, board.place_.page);
      if (!lock_.held() || board.memory_.IsCurrent()) return;
      lock_.Release();
    }
  }
  bool held() const { return lock_.held(); }  // false: the epoch is aborted

 private:
  SharedLock lock_;
};

}  // namespace hvd
