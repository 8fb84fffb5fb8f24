// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/world.h"

#include <algorithm>
#include <cstdlib>

#include "tests/simulator/world_parts.h"

namespace hvd::rt::simulator {

void Stats::Add(const Stats& more) {
  marks += more.marks;
  decisions += more.decisions;
  batches += more.batches;
  root_messages += more.root_messages;
  other_messages += more.other_messages;
  root_children += more.root_children;
  other_batches += more.other_batches;
  bytes += more.bytes;
  aborted_worlds += more.aborted_worlds;
}

World::World(const Plan& plan) : plan_(plan), random_(plan.seed ^ 0x5eed) {
  for (const HostShape& host : plan_.hosts) {
    pages_.push_back(std::make_unique<HostPage>());
    pages_.back()->local_size = static_cast<uint32_t>(host.ranks);
    for (int r = 0; r < host.ranks; ++r) host_of_.push_back(static_cast<int>(pages_.size()) - 1);
  }
  const size_t sets = plan_.sets.size();
  ranks_.resize(host_of_.size());
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
    ranks_[r].member.assign(sets, -1);
    ranks_[r].joined.assign(sets, false);
    ranks_[r].joins.assign(sets, 0);
    ranks_[r].round_of.assign(sets, std::vector<int>(plan_.names + 2));
    ranks_[r].open.assign(plan_.rounds.size() + 1, 0);
    ranks_[r].is_slow = random_.OneIn(64);
    actors_.push_back({Actor::kRank, r, 0});
  }
  for (size_t s = 0; s < sets; ++s) BuildSet(static_cast<int>(s));
  queued_.assign(actors_.size(), false);
  for (uint32_t a = 0; a < ranks_.size(); ++a) Wake(a);
}

World::~World() = default;

void World::BuildSet(int index) {
  sets_.push_back(std::make_unique<Set>());
  Set& set = *sets_.back();
  set.index = index;
  set.executed.resize(plan_.sets[index].size());
  set.members = plan_.sets[index];
  set.marks.resize(plan_.names + 2);
  std::vector<HostShape> hosts;
  for (const int rank : set.members) {
    if (set.world_hosts.empty() || set.world_hosts.back() != host_of_[rank]) {
      set.world_hosts.push_back(host_of_[rank]);
      hosts.push_back({plan_.hosts[host_of_[rank]].name, 0});
    }
    ++hosts.back().ranks;
  }
  set.topology = Topology(hosts);
  set.several_hosts = hosts.size() > 1;
  for (int h = 0; h < static_cast<int>(hosts.size()); ++h) BuildHost(index, h);
  for (int m = 0; m < static_cast<int>(set.members.size()); ++m) {
    ranks_[set.members[m]].member[index] = m;
    for (Marks& marks : set.marks) marks.by_member.resize(set.members.size());
  }
}

void World::BuildHost(int index, int h) {
  Set& set = *sets_[index];
  const int local_size = set.topology.hosts()[h].ranks;
  const size_t bytes = Board::Bytes(local_size, set.topology.size(), plan_.numbers);
  set.memory.emplace_back(calloc(1, bytes), free);
  BoardPlace place;
  place.page = pages_[set.world_hosts[h]].get();
  place.memory = set.memory.back().get();
  place.local_size = local_size;
  place.ranks_here = set.topology.ranks_of(h);
  place.world_size = set.topology.size();
  place.host = h;
  place.several_hosts = set.several_hosts;
  place.numbers = plan_.numbers;
  place.space = &space_;
  place.most_pending = plan_.most_pending;
  for (int r = 0; r < local_size; ++r) {
    place.local_rank = r;
    set.boards.push_back(std::make_unique<Board>(place));
  }
  Host& host = set.hosts.emplace_back();
  host.index = h;
  if (!set.several_hosts) return;
  host.leader = std::make_unique<LeaderCore>(
      LeaderCoreParts{&set.topology, h, set.boards[set.topology.rank_at(h, 0)].get(), plan_.fan_out,
                      plan_.most_ids});
  host.actor = static_cast<uint32_t>(actors_.size());
  actors_.push_back({Actor::kLeader, h, index});
  // One actor for all links into this host; the links themselves are independent.
  host.links_actor = static_cast<uint32_t>(actors_.size());
  actors_.push_back({Actor::kLinks, h, index});
}

void World::Fail(const std::string& what) {
  if (violation_.empty()) violation_ = "seed " + std::to_string(plan_.seed) + ": " + what;
}

void World::Wake(uint32_t actor) {
  if (queued_[actor]) return;
  queued_[actor] = true;
  runnable_.push_back(actor);
}

bool World::RunActor(uint32_t actor) {
  const Actor& who = actors_[actor];
  switch (who.kind) {
    case Actor::kRank:
      return RunRank(who.index);
    case Actor::kLeader:
      return StepLeader(who.set, who.index);
    case Actor::kLinks:
      return Deliver(who.set, who.index);
  }
  return false;
}

// One thing or a few: what a rank touches stays in the cache meanwhile. One that is slow is passed
// over most of the time.
bool World::RunRank(int rank) {
  if (ranks_[rank].is_slow && !random_.OneIn(6)) return true;
  for (uint32_t steps = 1 + random_.Below(8); steps > 0; --steps) {
    if (!StepRank(rank)) return false;
  }
  return true;
}

std::string World::Run() {
  while (!runnable_.empty() && violation_.empty()) {
    const uint32_t at = random_.Below(runnable_.size());
    const uint32_t actor = runnable_[at];
    runnable_[at] = runnable_.back();
    runnable_.pop_back();
    queued_[actor] = false;
    if (RunActor(actor)) Wake(actor);
  }
  if (violation_.empty()) CheckEnd();
  return violation_;
}

std::string World::DescribeOpen() const {
  std::string text;
  for (const Round& round : plan_.rounds) {
    text += "\n  round of set " + std::to_string(round.set) + ", segment " +
            std::to_string(round.segment) + (round.is_join ? ": join" : ":");
    for (const Item& item : round.items) text += " t" + std::to_string(item.name);
  }
  for (size_t r = 0; r < ranks_.size() && r < 12; ++r) {
    const Rank& rank = ranks_[r];
    text += "\n  rank " + std::to_string(r) + ": round " + std::to_string(rank.round) +
            ", submitted " + std::to_string(rank.submitted) + " of " +
            std::to_string(rank.order.size()) + (rank.leaving ? ", leaving" : "") +
            (rank.finished ? ", finished" : "");
    for (size_t s = 0; s < sets_.size(); ++s) {
      if (rank.joined[s]) text += ", joined set " + std::to_string(s);
      if (rank.joins[s] > 0) text += ", joins " + std::to_string(rank.joins[s]);
    }
  }
  return text;
}

// Nothing moves any more.
void World::CheckEnd() {
  bool aborted = false;
  std::string cause;
  for (const auto& page : pages_) {
    if (page->aborted.load() == 0) continue;
    aborted = true;
    cause = CauseOf(*page).text;
  }
  stats_.aborted_worlds = aborted ? 1 : 0;
  if (aborted && plan_.leaver < 0 && !plan_.passes_limit) {
    Fail("aborted, and nobody had left: " + cause);
  }
  if (plan_.passes_limit && cause.find("(HVD_MAX_PENDING)") == std::string::npos) {
    Fail("no host says that the limit is passed, but: " + cause);
  }
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
    if (ranks_[r].finished || pages_[host_of_[r]]->aborted.load() != 0) continue;
    return Fail("deadlock: rank " + std::to_string(r) + " waits in round " +
                std::to_string(ranks_[r].round) + " of " + std::to_string(plan_.rounds.size()) +
                DescribeOpen());
  }
  if (aborted) return;
  for (const auto& set : sets_) {
    for (const Host& host : set->hosts) {
      if (!set->several_hosts) continue;
      if (!host.leader->HeardAllByes() || host.leader->owes_bye()) return Fail("byes are missing");
      for (const auto& [from, link] : host.links) {
        if (!link.empty()) return Fail("a message was left");
      }
    }
  }
}

}  // namespace hvd::rt::simulator
