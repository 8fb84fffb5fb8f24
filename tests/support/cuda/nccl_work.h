// SPDX-License-Identifier: Apache-2.0
// What the stand-in for NCCL does on a stream: the collectives over a meeting of ranks. Each comes
// in pieces, of which every rank gives its own before it takes the others', so that nobody waits
// for memory.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/gpu/nccl_library.h"
#include "tests/support/cuda/nccl_meeting.h"

namespace hvd::rt {

enum class NcclKind {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kSend,
  kReceive
};

struct NcclWork {
  NcclKind kind = NcclKind::kAllReduce;
  const char* from = nullptr;  // where the bytes lie
  char* to = nullptr;
  size_t count = 0;  // as NCCL's call has it
  NcclType type = kNcclFloat32;
  NcclOp op = kNcclSum;
  double scale = 1;  // of each rank's input, before it is summed
  int other = 0;     // the root, or the peer
};

// False: this rank has left the meeting meanwhile.
bool RunNcclGroup(const std::vector<NcclWork>& group, NcclMeeting* meeting);

}  // namespace hvd::rt
