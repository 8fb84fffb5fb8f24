// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/world_parts.h"

namespace hvd::rt::simulator {

void World::Send(Set* set, int from, const LeaderCore::Outcome& outcome) {
  Host& host = set->hosts[from];
  const auto put = [&](int to, const std::string& bytes) {
    Host& target = set->hosts[to];
    target.links[from].push_back(bytes);
    Wake(target.links_actor);
    ++(from == 0 ? stats_.root_messages : stats_.other_messages);
    stats_.bytes += bytes.size();
  };
  if (outcome.up) put(host.leader->parent(), EncodeAgreement(*outcome.up));
  for (const AgreementMessage& message : outcome.down) {
    const std::string bytes = EncodeAgreement(message);
    for (const int child : host.leader->children()) put(child, bytes);
    if (from != 0 || message.decisions.empty()) continue;
    stats_.root_children += host.leader->children().size();
    stats_.other_batches += set->hosts.size() - 1;
  }
}

bool World::StepLeader(int index, int h) {
  Set& set = *sets_[index];
  Host& host = set.hosts[h];
  if (host.broken) return false;
  const absl::StatusOr<LeaderCore::Outcome> outcome = host.leader->Step();
  if (!outcome.ok()) {
    LeaderFailed(&set, h, outcome.status());
    return false;
  }
  Send(&set, h, *outcome);
  if (outcome->appended) WakeHost(&set, h);
  return false;
}

// The oldest message of one of the links into this host.
bool World::Deliver(int index, int h) {
  Set& set = *sets_[index];
  Host& host = set.hosts[h];
  if (host.links.empty()) return false;
  auto link = host.links.begin();
  std::advance(link, random_.Below(host.links.size()));
  const std::string bytes = std::move(link->second.front());
  const int from = link->first;
  link->second.pop_front();
  if (link->second.empty()) host.links.erase(link);
  if (host.broken) return !host.links.empty();
  const absl::StatusOr<AgreementMessage> message = DecodeAgreement(bytes);
  absl::Status taken = message.status();
  if (taken.ok()) taken = host.leader->OnMessage(from, *message);
  if (!taken.ok()) LeaderFailed(&set, h, taken);
  Wake(host.actor);
  return !host.links.empty();
}

void World::LeaderFailed(Set* set, int h, const absl::Status& status) {
  if (!absl::IsAborted(status)) Fail("host " + std::to_string(h) + ": " + status.ToString());
  const int world_host = set->world_hosts[h];
  AbortEpoch(pages_[world_host].get(), std::string(status.message()).c_str(), nullptr);
  BreakHost(world_host);
}

// The epoch is broken on this host: its leaders tell their neighbours, as Leader does.
void World::BreakHost(int world_host) {
  const std::string cause = CauseOf(*pages_[world_host]).text;
  const char* const expected = plan_.passes_limit ? "(HVD_MAX_PENDING)" : "has left the job";
  if (cause.find(expected) == std::string::npos) Fail("aborted: " + cause);
  if (cause.find("rank ") != 0) Fail("aborted without a name: " + cause);
  AgreementMessage aborted;
  aborted.aborted = cause;
  aborted.abort_rank = CauseOf(*pages_[world_host]).rank;
  if (cause.find("rank " + std::to_string(aborted.abort_rank) + " ") != 0) {
    Fail("rank " + std::to_string(aborted.abort_rank) + " left, and it says: " + cause);
  }
  for (const auto& set : sets_) {
    for (Host& host : set->hosts) {
      if (set->world_hosts[host.index] != world_host || host.broken || !set->several_hosts)
        continue;
      host.broken = true;
      LeaderCore::Outcome outcome;
      if (!host.leader->is_root()) outcome.up = aborted;
      outcome.down.push_back(aborted);
      Send(set.get(), host.index, outcome);
    }
  }
}

}  // namespace hvd::rt::simulator
