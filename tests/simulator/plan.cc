// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/plan.h"

#include <algorithm>

namespace hvd::rt::simulator {
namespace {

constexpr int kItemsAtMost = 5;

std::vector<HostShape> DrawHosts(const Size& size, Random* random) {
  std::vector<HostShape> hosts;
  for (int h = 0; h < size.hosts; ++h) {
    const int fewer =
        size.uneven ? static_cast<int>(random->Below(static_cast<uint64_t>(size.ranks_per_host)))
                    : 0;
    hosts.push_back({"h" + std::to_string(h), size.ranks_per_host - fewer});
  }
  return hosts;
}

// All ranks, and up to two overlapping subsets.
std::vector<std::vector<int>> DrawSets(int ranks, Random* random) {
  std::vector<std::vector<int>> sets(1);
  for (int r = 0; r < ranks; ++r) sets[0].push_back(r);
  const uint32_t more = ranks > 1 ? random->Below(3) : 0;
  for (uint32_t s = 0; s < more; ++s) {
    std::vector<int> set;
    const uint32_t stride = 1 + random->Below(4);
    for (int r = 0; r < ranks; ++r) {
      if (random->OneIn(stride)) set.push_back(r);
    }
    if (!set.empty()) sets.push_back(set);
  }
  return sets;
}

RequestKind DrawKind(int ranks, Random* random) {
  if (random->OneIn(12)) return RequestKind::kBarrier;
  if (random->OneIn(12)) return RequestKind::kBroadcast;
  // Every rank reads the rows of all: kept rare where there are many.
  if (random->OneIn(ranks > 1000 ? 60 : 6)) return RequestKind::kAllgather;
  return RequestKind::kAllreduce;
}

Round DrawRound(const Plan& plan, int set, std::vector<int>* versions, Random* random) {
  Round round;
  round.set = set;
  round.waits = random->OneIn(2);
  std::vector<int> used;
  const uint32_t count = 1 + random->Below(kItemsAtMost);
  while (round.items.size() < count) {
    Item item;
    item.name = static_cast<int>(random->Below(static_cast<uint64_t>(plan.names)));
    if (std::count(used.begin(), used.end(), item.name) > 0) continue;
    used.push_back(item.name);
    if (random->OneIn(6)) ++(*versions)[item.name];
    item.version = (*versions)[item.name];
    item.kind = DrawKind(static_cast<int>(plan.sets[0].size()), random);
    const std::vector<int>& members = plan.sets[set];
    if (random->OneIn(15)) item.odd_rank = members[random->Below(members.size())];
    round.items.push_back(item);
  }
  return round;
}

uint64_t Mix(uint64_t a, uint64_t b, uint64_t c) {
  return Random(a * 1000003 + b * 10007 + c).Next();
}

}  // namespace

Plan Plan::Draw(uint64_t seed, const Size& size) {
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  plan.hosts = DrawHosts(size, &random);
  int ranks = 0;
  for (const HostShape& host : plan.hosts) ranks += host.ranks;
  plan.sets = DrawSets(ranks, &random);
  plan.names = static_cast<int>(8 + random.Below(60));
  // Too few for all that can be outstanding at once, or less than there are names.
  plan.numbers = 4u << random.Below(5);
  plan.most_ids = 4 + random.Below(40);
  plan.fan_out = size.hosts > 100 ? 16 : static_cast<int>(1 + random.Below(16));
  std::vector<std::vector<int>> versions(plan.sets.size(), std::vector<int>(plan.names));
  std::vector<int> segments(plan.sets.size());
  const uint32_t count = 4 + random.Below(8);
  for (uint32_t i = 0; i < count; ++i) {
    const int set = static_cast<int>(random.Below(plan.sets.size()));
    Round round = DrawRound(plan, set, &versions[set], &random);
    round.segment = segments[set];
    plan.rounds.push_back(std::move(round));
    if (random.OneIn(4)) {
      Round join;
      join.set = set;
      join.is_join = true;
      join.segment = segments[set]++;
      plan.rounds.push_back(join);
    }
  }
  if (ranks > 1 && random.OneIn(8)) {
    plan.leaver = static_cast<int>(random.Below(static_cast<uint64_t>(ranks)));
    plan.leaver_round = static_cast<int>(random.Below(plan.rounds.size()));
  }
  return plan;
}

Plan Plan::DrawCrowd(uint64_t seed, const Size& size, int tensors) {
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  plan.hosts = DrawHosts(size, &random);
  plan.sets.resize(2);
  for (const HostShape& host : plan.hosts) {
    for (int r = 0; r < host.ranks; ++r) {
      const int rank = static_cast<int>(plan.sets[0].size());
      plan.sets[0].push_back(rank);
      if (rank % 4 < 2) plan.sets[1].push_back(rank);
    }
  }
  plan.names = tensors;
  plan.numbers = 4u << random.Below(5);
  plan.most_ids = random.OneIn(2) ? 0 : 8 + random.Below(static_cast<uint64_t>(tensors));
  plan.fan_out = static_cast<int>(1 + random.Below(16));
  for (int i = 0; i < 4; ++i) {
    Round round;
    round.set = i % 2;
    round.waits = true;
    round.opposite = true;
    for (int name = 0; name < tensors; ++name) {
      Item item;
      item.name = name;
      item.version = i > 1 && name % 7 == 0 ? 1 : 0;
      item.kind = name % 11 == 0 ? RequestKind::kAllgather : RequestKind::kAllreduce;
      round.items.push_back(item);
    }
    plan.rounds.push_back(std::move(round));
  }
  return plan;
}

// Only in segments that end with a join; a third of the ranks run out of data early there.
bool Plan::HasJoinedBefore(int rank, int round) const {
  const Round& at = rounds[round];
  int length = 0, index = 0;
  bool ends = false;
  for (int i = 0; i < static_cast<int>(rounds.size()); ++i) {
    const Round& other = rounds[i];
    if (other.set != at.set || other.segment != at.segment) continue;
    if (i < round) ++index;
    ends = ends || other.is_join;
    ++length;
  }
  const uint64_t draw = Mix(seed, rank, at.set * 1000 + at.segment);
  if (!ends || draw % 3 != 0) return false;
  return index >= static_cast<int>(draw / 3 % static_cast<uint64_t>(length));
}

Signature SignatureOf(const Item& item, int rank) {
  Signature signature;
  signature.kind = item.kind;
  if (item.kind != RequestKind::kAllreduce && item.kind != RequestKind::kAllgather &&
      item.kind != RequestKind::kBroadcast) {
    return signature;
  }
  signature.dtype = HVD_FLOAT32;
  signature.op = item.kind == RequestKind::kAllreduce ? HVD_SUM : 0;
  signature.ndim = 2;
  signature.shape[0] = item.kind == RequestKind::kAllgather ? RowsOf(item, rank) : 7;
  signature.shape[1] = 1 + item.name * 100 + item.version;
  if (rank == item.odd_rank) signature.shape[1] += 50;
  return signature;
}

int64_t RowsOf(const Item& item, int rank) { return (rank * 7 + item.name) % 5; }

}  // namespace hvd::rt::simulator
