// SPDX-License-Identifier: Apache-2.0
// The values that a rank gives when it submits a tensor, and the entry that it reads when all have
// agreed on it. Plain values: execution and fusion need nothing else of the agreement.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine/request/request.h"

namespace hvd::rt {

// Where one of the host's ranks has a tensor: offsets in its arena.
struct HostBuffers {
  int64_t input_at = -1, output_at = -1;
};

// The values that a rank gives when it submits a tensor.
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

}  // namespace hvd::rt
