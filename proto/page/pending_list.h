// SPDX-License-Identifier: Apache-2.0
// What a rank has submitted and not yet got back, told to hvdd when it asks: who waits for whom.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace hvd {

struct PendingTensor {
  uint64_t sequence = 0;  // grows with each submission of the rank in its process set
  std::string name;
  std::string what;                   // "allreduce float32 [64,10] sum"
  std::vector<int64_t> between = {};  // global ranks of a send or receive; empty: the set's members
  bool moving = false;  // both sides have asked for it and it is on its way, which may take long
};

struct PendingList {
  int32_t set = 0;               // the process set's number, as users know it
  std::vector<int64_t> members;  // global ranks of the process set; empty: all
  std::vector<PendingTensor> tensors;
  bool joined = false;     // hvd_join: counts as having submitted everything
  bool truncated = false;  // there was no room for more
};

// A rank's place for its answers, one a process set. Zeroed memory is one that has not answered.
struct PendingArea {
  std::atomic<uint32_t> answered;  // the question that the rest answers; 0: being written
  uint32_t bytes;
  char text[65536 - 8];
};

// By whoever executes the set's requests.
void WritePending(const PendingList& list, uint32_t question, PendingArea* area);
// Reads the answer to this question or to a later one, which says no less. False: neither has been
// answered (yet), the answer changes at this moment, or what is there makes no sense.
bool ReadPending(const PendingArea& area, uint32_t question, PendingList* list);

}  // namespace hvd
