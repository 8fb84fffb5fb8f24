// What ranks ask for, on its way to a decision, and the decision. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/agreement/board_memory.h"
#include "runtime/engine/request/mismatch.h"

namespace hvd {

// What a rank says when it submits a tensor.
struct MarkValue {
  Signature signature;
  int64_t input_at = -1, output_at = -1;  // offsets in this rank's arena; -1: not there
  bool wants_number = false;              // a direct one, for the uses after this (direct.h)
};

// An agreed entry as a rank reads it from the log.
struct LogEntry {
  uint32_t number = 0;
  std::string error;          // empty: run it
  std::vector<int64_t> rows;  // by global rank; only for kinds where they may differ
  Signature signature;        // the agreed one; an allgather's first dimension is one rank's
  // By local rank; empty unless every rank of this host has the tensor in its arena.
  std::vector<HostBuffers> host_buffers;
  int contributors = 0;        // ranks that have submitted it themselves
  int64_t result = -1;         // of a join: the last rank
  uint32_t direct_number = 0;  // the name's from now on; 0: none, or as before
};

// What some ranks ask for under one name. Ranks are global.
struct Report {
  Asker first;
  std::optional<Asker> other;  // asks for something else than `first`
  int contributors = 0;        // ranks that have submitted it themselves
  int joined_rank = -1;        // one that has not, because it has joined
  int last_joined = -1;        // of a join: the last rank
  // Of an allgather: each host's index and its ranks' rows, host after host.
  std::vector<int64_t> rows;
};

// Does it go on with ranks that have joined and give nothing?
bool RunsWhileJoined(const Signature& signature);

// What to do about a report of all `world_size` ranks. Leaves number and rows to the caller.
LogEntry Decide(std::string_view name, const Report& report, int world_size);

}  // namespace hvd
