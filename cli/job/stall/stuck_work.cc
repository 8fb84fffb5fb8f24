// SPDX-License-Identifier: Apache-2.0
#include "cli/job/stall/stuck_work.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "proto/page/message_counts.h"

namespace hvd::cli {
namespace {

using Ranks = std::set<int>;
// A rank, its peer, process set, channel, step.
using MessageKey = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;

MessageKey KeyOf(const v1::MessagesSeen& seen) {
  return {seen.rank(), seen.peer(), seen.set(), seen.channel(), seen.step()};
}
// As the other end calls them.
MessageKey FarKeyOf(const v1::MessagesSeen& seen) {
  return {seen.peer(), seen.rank(), seen.set(), seen.channel(), seen.step()};
}

// The facts that are known of one process set.
struct SetFacts {
  Ranks under_way, executing;
  double asked_s = 0;  // the longest wait for a tensor
  double still_s = 0;  // since its last rank moved
  std::string what;    // of those that execute, if any
};

// The facts of the whole job. All words are workers', so ranks that no job has are left out.
struct Facts {
  Facts(const PendingByHost& answers, int size);

  std::map<int, SetFacts> sets;
  std::map<int, double> held_s;  // ranks that the kernel holds, and for how long
  Ranks stopped, silent;
  std::map<MessageKey, const v1::MessagesSeen*> messages;
};

Facts::Facts(const PendingByHost& answers, int size) {
  for (const auto& [host, answer] : answers) {
    for (const v1::RankWork& work : answer.work()) {
      if (work.rank() >= static_cast<uint32_t>(size) || work.on_device()) continue;
      const auto [at, is_new] = sets.try_emplace(static_cast<int>(work.set()));
      SetFacts& facts = at->second;
      facts.still_s = is_new ? work.still_s() : std::min(facts.still_s, work.still_s());
      if (facts.what.empty() || (work.executes() && facts.executing.empty())) {
        facts.what = work.what();
      }
      facts.under_way.insert(static_cast<int>(work.rank()));
      if (work.executes()) facts.executing.insert(static_cast<int>(work.rank()));
    }
    for (const v1::WaitingTensor& tensor : answer.tensors()) {
      const auto in_set = sets.find(static_cast<int>(tensor.set()));
      if (in_set == sets.end() || tensor.moving()) continue;
      in_set->second.asked_s = std::max(in_set->second.asked_s, tensor.waited_s());
    }
    for (const v1::HeldRank& held : answer.held()) {
      if (!held.has_rank() || held.rank() >= static_cast<uint32_t>(size)) continue;
      stopped.insert(static_cast<int>(held.rank()));
      held_s[static_cast<int>(held.rank())] = held.held_s();
    }
    for (const uint32_t rank : answer.silent()) silent.insert(static_cast<int>(rank));
    for (const v1::MessagesSeen& seen : answer.messages()) {
      const bool known = std::max(seen.rank(), seen.peer()) < static_cast<uint32_t>(size);
      if (known) messages[KeyOf(seen)] = &seen;
    }
  }
}

Ranks Both(const Ranks& a, const Ranks& b) {
  Ranks both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  return both;
}

// Whoever waits in hvd_join or hvd_shutdown for the others' end may do so for ever.
bool MustGoOn(const Facts& job, const SetFacts& facts, double least_s) {
  if (!facts.executing.empty() || facts.asked_s >= least_s) return true;
  const Ranks mute = Both(job.silent, facts.under_way);
  return std::any_of(mute.begin(), mute.end(),
                     [&job](int rank) { return job.stopped.count(rank) == 0; });
}

// One process set that stands still.
class Stop {
 public:
  Stop(const Facts& job, int set, const SetFacts& facts) : job_(job), set_(set), facts_(facts) {
    for (const auto& [key, seen] : job.messages) {
      if (IsAwaited(*seen)) awaited_.push_back(seen);
    }
  }

  StuckWork Explain(const Topology& topology) const {
    StuckWork stuck;
    stuck.set = set_;
    stuck.executing = !facts_.executing.empty();
    stuck.what = facts_.what;
    stuck.still_s = facts_.still_s;
    Ranks ranks = Stopped();
    if (!ranks.empty()) {
      stuck.why = StuckWork::kStopped;
    } else if (ranks = Ends(); !ranks.empty()) {
      stuck.why = StuckWork::kLink;
      stuck.links = Links(topology);
    } else if (ranks = Both(job_.silent, facts_.under_way); !ranks.empty()) {
      stuck.why = StuckWork::kSilent;
    } else {
      ranks = facts_.under_way;
    }
    stuck.ranks.assign(ranks.begin(), ranks.end());
    return stuck;
  }

 private:
  // A leader always listens, but not while it executes something.
  bool IsAwaited(const v1::MessagesSeen& seen) const {
    if (static_cast<int>(seen.set()) != set_ || seen.asked() <= seen.came()) return false;
    const bool executes = facts_.executing.count(static_cast<int>(seen.rank())) != 0;
    return executes == (seen.channel() != kAgreementMessages);
  }
  // Whoever takes part or is waited for. A message that a rank has sent may still be in it, though
  // it has gone on.
  Ranks Stopped() const {
    Ranks needed = facts_.under_way;
    for (const v1::MessagesSeen* seen : awaited_) needed.insert(static_cast<int>(seen->peer()));
    return Both(job_.stopped, needed);
  }
  // Whether what `seen` waits for has been sent.
  bool WasSent(const v1::MessagesSeen& seen) const {
    const auto far = job_.messages.find(FarKeyOf(seen));
    if (far != job_.messages.end()) return far->second->sent() > seen.came();
    // Forgotten: whoever has gone on from a collective has sent all of it.
    return seen.channel() != kAgreementMessages &&
           facts_.executing.count(static_cast<int>(seen.peer())) == 0;
  }
  Ranks Ends() const {
    Ranks ends;
    for (const v1::MessagesSeen* seen : awaited_) {
      if (!WasSent(*seen)) continue;
      ends.insert(static_cast<int>(seen->rank()));
      ends.insert(static_cast<int>(seen->peer()));
    }
    return ends;
  }
  std::vector<std::pair<int, int>> Links(const Topology& topology) const {
    std::set<std::pair<int, int>> links;
    for (const v1::MessagesSeen* seen : awaited_) {
      if (!WasSent(*seen)) continue;
      links.insert(std::minmax(topology.place(static_cast<int>(seen->rank())).host,
                               topology.place(static_cast<int>(seen->peer())).host));
    }
    return {links.begin(), links.end()};
  }

  const Facts& job_;
  const int set_;
  const SetFacts& facts_;
  std::vector<const v1::MessagesSeen*> awaited_;
};

// Waiting in hvd_join or hvd_shutdown for ranks that work, however long, is no stall; for ranks
// that are held it is one. All ranks are members of set 0.
std::optional<StuckWork> StuckEnds(const Facts& job, const SetFacts& facts, double least_s) {
  StuckWork stuck;
  stuck.why = StuckWork::kEnds;
  double held_s = 0;
  for (const auto& [rank, seconds] : job.held_s) {
    if (seconds < least_s || facts.under_way.count(rank) != 0) continue;
    held_s = std::max(held_s, seconds);
    stuck.ranks.push_back(rank);
  }
  stuck.still_s = std::min(facts.still_s, held_s);
  if (stuck.ranks.empty()) return std::nullopt;
  return stuck;
}

// One for all whose devices work on the same.
std::vector<StuckWork> StuckDevices(const PendingByHost& answers, int size, double least_s) {
  std::map<std::pair<int, std::string>, StuckWork> found;
  for (const auto& [host, answer] : answers) {
    for (const v1::RankWork& work : answer.work()) {
      if (!work.on_device() || work.still_s() < least_s) continue;
      if (work.rank() >= static_cast<uint32_t>(size)) continue;
      StuckWork& stuck = found[{static_cast<int>(work.set()), work.what()}];
      stuck.why = StuckWork::kDevice;
      stuck.set = static_cast<int>(work.set());
      stuck.executing = true;
      stuck.what = work.what();
      stuck.still_s = std::max(stuck.still_s, work.still_s());
      stuck.ranks.push_back(static_cast<int>(work.rank()));
    }
  }
  std::vector<StuckWork> devices;
  for (auto& [key, stuck] : found) {
    std::sort(stuck.ranks.begin(), stuck.ranks.end());
    devices.push_back(std::move(stuck));
  }
  return devices;
}

}  // namespace

std::vector<StuckWork> FindStuck(const PendingByHost& answers, const Topology& topology,
                                 double least_s) {
  const Facts job(answers, topology.size());
  std::vector<StuckWork> found = StuckDevices(answers, topology.size(), least_s);
  for (const auto& [set, facts] : job.sets) {
    if (facts.still_s < least_s) continue;
    if (!MustGoOn(job, facts, least_s)) {
      const auto ends = set == 0 ? StuckEnds(job, facts, least_s) : std::nullopt;
      if (ends.has_value()) found.push_back(*ends);
      continue;
    }
    found.push_back(Stop(job, set, facts).Explain(topology));
  }
  return found;
}

}  // namespace hvd::cli
