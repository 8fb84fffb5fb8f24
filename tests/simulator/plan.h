// SPDX-License-Identifier: Apache-2.0
// What the ranks of a simulated job do: drawn from a seed, the same for all ranks that take part.
#pragma once

#include <cstdint>
#include <vector>

#include "hostfile/topology.h"
#include "runtime/engine/request/request.h"
#include "tests/simulator/random.h"

namespace hvd::rt::simulator {

struct Size {
  int hosts = 1;
  int ranks_per_host = 1;  // at most; with `uneven`, some have fewer
  bool uneven = false;
};

// One tensor in a round.
struct Item {
  int name = 0;
  int version = 0;  // of its shape
  RequestKind kind = RequestKind::kAllreduce;
  int odd_rank = -1;  // a world rank that asks for another shape
};

// The calls that the members of a set submit in any order; or a join of them all.
struct Round {
  int set = 0;
  std::vector<Item> items;
  bool waits = false;  // for all of it before the next round
  bool is_join = false;
  bool opposite = false;  // every other rank submits in the order of the items, the rest backwards
  int segment = 0;        // rounds up to a join of the set
};

struct Plan {
  uint64_t seed = 0;
  std::vector<HostShape> hosts;
  std::vector<std::vector<int>> sets;  // world ranks, ascending; set 0 has all
  std::vector<Round> rounds;
  uint32_t numbers = 64;   // of a board at first
  uint32_t most_ids = 64;  // that the root remembers
  int fan_out = 16;
  int names = 1;
  int leaver = -1;  // a rank that leaves before this round, while the others go on
  int leaver_round = 0;
  uint32_t most_pending = 1u << 20;
  bool passes_limit = false;  // more are pending, and the epoch ends for it

  static Plan Draw(uint64_t seed, const Size& size);
  // Draws rounds: so many tensors of all ranks, then of half of them, are pending at once in
  // opposite orders; and all that twice.
  static Plan DrawCrowd(uint64_t seed, const Size& size, int tensors);
  // The first round of the segment in which the rank does not take part any more: it has joined.
  bool HasJoinedBefore(int rank, int round) const;
};

Signature SignatureOf(const Item& item, int rank);
int64_t RowsOf(const Item& item, int rank);

}  // namespace hvd::rt::simulator
