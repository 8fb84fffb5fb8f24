// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/host_memories.h"

#include <utility>

namespace hvd::daemon {

absl::Status HostMemories::Create(const EpochPlan& plan) {
  EpochShape shape;
  shape.epoch = plan.epoch;
  shape.slots = plan.slots;
  for (const int slot : plan.slots) shape.members.push_back((*workers_)[slot].member);
  const absl::Span<const int> ranks = plan.topology.ranks_of(plan.host);
  shape.ranks.assign(ranks.begin(), ranks.end());
  shape.several_hosts = plan.topology.hosts().size() > 1;
  absl::StatusOr<std::shared_ptr<EpochMemory>> memory = EpochMemory::Create(shape);
  if (!memory.ok()) return memory.status();
  handlers_.on_create(memory->get());
  if (changing_.erase(plan.epoch) != 0) (*memory)->SetChange();
  memories_[plan.epoch] = *std::move(memory);
  return absl::OkStatus();
}

absl::Status HostMemories::SetFirst(uint64_t epoch, uint64_t bytes) {
  const auto found = memories_.find(epoch);
  return found == memories_.end() ? absl::OkStatus() : found->second->SetFirst(bytes);
}

bool HostMemories::Abort(uint64_t epoch, const std::string& cause) {
  const auto found = memories_.find(epoch);
  if (found == memories_.end()) return false;
  found->second->Abort(cause);
  return true;
}

void HostMemories::Change(uint64_t epoch) {
  const auto found = memories_.find(epoch);
  if (found != memories_.end()) return found->second->SetChange();
  changing_.insert(epoch);
}

void HostMemories::Forget(uint64_t epoch) {
  const auto found = memories_.find(epoch);
  if (found == memories_.end()) return;
  handlers_.on_forget();
  const EpochMemory& memory = *found->second;
  for (int local_rank = 0; local_rank < memory.local_size(); ++local_rank) {
    WorkerSlot& worker = (*workers_)[memory.slot_of(local_rank)];
    if (memory.IsOf(worker.member, local_rank)) worker.counts.Add(memory.Counts(local_rank));
  }
  memories_.erase(found);
}

std::shared_ptr<EpochMemory> HostMemories::Find(uint64_t epoch) const {
  const auto found = memories_.find(epoch);
  return found == memories_.end() ? nullptr : found->second;
}

AbortWord HostMemories::AbortOf(uint64_t epoch) const {
  const auto found = memories_.find(epoch);
  return found == memories_.end() ? AbortWord() : found->second->aborted();
}

}  // namespace hvd::daemon
