// SPDX-License-Identifier: Apache-2.0
// The board of a host, in this process's memory.
#pragma once

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/engine/agreement/board.h"
#include "tests/support/test_space.h"

namespace hvd::rt::test {

// Its ranks look at the same memory. `how`: what else there is to say.
struct TestBoard {
  explicit TestBoard(int local_size, const BoardPlace& how = {})
      : page(std::make_unique<HostPage>()),
        memory(
            static_cast<std::byte*>(calloc(1, Board::Bytes(local_size, local_size, how.numbers)))) {
    page->local_size = local_size;
    for (int r = 0; r < local_size; ++r) {
      BoardPlace place = how;
      place.space = &space;
      place.page = page.get();
      place.memory = memory;
      place.local_rank = r;
      place.local_size = local_size;
      place.world_size = local_size;
      ranks.push_back(std::make_unique<Board>(place));
    }
  }
  ~TestBoard() { free(memory); }
  std::unique_ptr<HostPage> page;
  std::byte* memory;
  TestSpace space;  // the boards' end comes first
  std::vector<std::unique_ptr<Board>> ranks;
};

inline Signature Sum(int64_t n) {
  Signature s;
  s.kind = RequestKind::kAllreduce;
  s.dtype = HVD_FLOAT32;
  s.op = HVD_SUM;
  s.ndim = 1;
  s.shape[0] = n;
  return s;
}

// Executes all that can be executed on all ranks; returns what rank 0 saw.
inline std::vector<LogEntry> ExecuteAll(TestBoard* board) {
  std::vector<LogEntry> seen;
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& rank : board->ranks) {
      if (!rank->HasNext()) rank->Close();
      if (!rank->HasNext()) continue;
      moved = true;
      if (rank == board->ranks[0]) {
        for (LogEntry& entry : rank->NextBatch()) seen.push_back(std::move(entry));
      }
      rank->Advance();
    }
  }
  return seen;
}

}  // namespace hvd::rt::test
