// SPDX-License-Identifier: Apache-2.0
// The requests of ranks on their way to a decision, and the decision. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/agreement/board/log_entry.h"
#include "runtime/engine/request/mismatch.h"

namespace hvd::rt {

// The requests of some ranks under one name. Ranks are global.
struct Report {
  Asker first;
  std::optional<Asker> other;  // asks for something else than `first`
  int contributors = 0;        // ranks that have submitted it themselves
  int joined_rank = -1;        // one that has not, because it has joined
  int last_joined = -1;        // of a join: the last rank
  // An allgather's rows: each host's index and its ranks' rows, host after host.
  std::vector<int64_t> rows;
};

// Does it go on with ranks that have joined and give nothing?
bool RunsWhileJoined(const Signature& signature);

// Decides what to do about a report of all `world_size` ranks. Leaves number and rows to the
// caller.
LogEntry Decide(std::string_view name, const Report& report, int world_size);

}  // namespace hvd::rt
