// SPDX-License-Identifier: Apache-2.0
// What a simulated world is made of. Only its own files include this.
#pragma once

#include <map>

#include "tests/simulator/world.h"

namespace hvd::rt::simulator {

struct World::Actor {
  enum Kind { kRank, kLeader, kLinks };
  Kind kind = kRank;
  int index = 0;  // world rank, or host of the set
  int set = 0;
};

struct World::Rank {
  std::vector<int> member;   // by set: index among its members, or -1
  std::vector<bool> joined;  // by set
  std::vector<int> joins;    // by set: how often it has called join
  // By round: submitted and not executed; the last one is the leave, of all sets.
  std::vector<int> open;
  std::vector<std::vector<int>> round_of;  // by set and name: 1 + round of what is outstanding
  int round = 0;
  std::vector<int> order;  // of the items of this round; empty: not started
  size_t submitted = 0;    // of `order`
  bool is_slow = false;
  bool leaving = false, finished = false;
};

// The requests of all members under one name, in the run that is coming.
struct World::Marks {
  std::vector<bool> by_member;
  int count = 0;
  bool differ = false;
  Signature first;
  Item item;
};

struct World::Host {
  int index = 0;
  std::unique_ptr<LeaderCore> leader;
  uint32_t actor = 0, links_actor = 0;
  std::map<int, std::deque<std::string>> links;  // by the host that sends; each in order
  bool broken = false;
};

// An entry as a rank reads it.
struct World::Seen {
  const LogEntry* entry = nullptr;
  int name = 0;
  bool ends_batch = false;
};

struct World::Set {
  int index = 0;
  std::vector<int> members;
  std::vector<int> world_hosts;  // by host of the set
  Topology topology;
  bool several_hosts = false;
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory;
  std::vector<std::unique_ptr<Board>> boards;  // by member
  std::vector<Host> hosts;
  std::vector<Marks> marks;  // by name; then join and leave
  // The work that the first rank to come there has executed: every other must find the same.
  std::vector<uint64_t> log;
  std::vector<Item> items;
  std::vector<std::vector<bool>> present;  // empty: all
  std::vector<size_t> executed;            // by member
};

}  // namespace hvd::rt::simulator
