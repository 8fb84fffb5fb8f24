// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/set_table.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hvd::rt {

void SetTable::Start(SetPointer global) {
  const MutexLock lock(&mutex_);
  sets_.clear();
  sets_.emplace(HVD_GLOBAL_PROCESS_SET, std::move(global));
  last_id_ = 0;
  members_.Clear();
}

std::vector<SetPointer> SetTable::TakeAll() {
  std::vector<SetPointer> all;
  const MutexLock lock(&mutex_);
  for (auto& [id, set] : sets_) all.push_back(std::move(set));
  sets_.clear();
  return all;
}

SetPointer SetTable::Find(int32_t id) const {
  const MutexLock lock(&mutex_);
  const auto found = sets_.find(id);
  return found == sets_.end() ? nullptr : found->second;
}

SetPointer SetTable::FindByRanks(const std::vector<int>& ranks) const {
  const MutexLock lock(&mutex_);
  for (const auto& [id, set] : sets_) {
    if (set->channels == 0 && set->ranks == ranks) return set;
  }
  return nullptr;
}

std::vector<SetPointer> SetTable::AsMember() const {
  const MutexLock lock(&mutex_);
  std::vector<SetPointer> sets;
  for (const auto& [id, set] : sets_) {
    if (set->engine != nullptr) sets.push_back(set);
  }
  return sets;
}

std::vector<int32_t> SetTable::ids() const {
  const MutexLock lock(&mutex_);
  std::vector<int32_t> ids;
  for (const auto& [id, set] : sets_) ids.push_back(id);
  return ids;
}

std::string SetTable::Unknown(int32_t id) const {
  const MutexLock lock(&mutex_);
  const bool removed = id > 0 && id <= last_id_;
  return "process set " + std::to_string(id) +
         (removed ? " has been removed"
                  : " does not exist; add_process_set makes one, 0 is all ranks");
}

void SetTable::Insert(SetPointer set) {
  const MutexLock lock(&mutex_);
  const int32_t id = set->id;
  sets_.emplace(id, std::move(set));
}

void SetTable::Erase(int32_t id) {
  const MutexLock lock(&mutex_);
  sets_.erase(id);
}

int SetTable::FreeRegion() const {
  const MutexLock lock(&mutex_);
  for (int region = 0; region < kMaxProcessSets; ++region) {
    const bool taken = std::any_of(sets_.begin(), sets_.end(), [region](const auto& entry) {
      return entry.second->region == region;
    });
    if (!taken) return region;
  }
  return -1;
}

absl::StatusOr<int32_t> SetTable::NextId() {
  const MutexLock lock(&mutex_);
  if (last_id_ == std::numeric_limits<int32_t>::max()) {
    return absl::ResourceExhaustedError(
        "all numbers of process sets have been used; shut down and init again to begin anew");
  }
  return ++last_id_;
}

absl::Status SetTable::Reserve(ProcessSet* set, int32_t* id) {
  const MutexLock lock(&mutex_);
  for (const auto& [number, other] : sets_) {
    if (other->channels == 0 || other->ranks != set->ranks || other->key != set->key) continue;
    *id = number;
    return absl::AlreadyExistsError(Describe(*other) + " has this key already; use that one");
  }
  if (!members_.TakeKey(set->ranks, set->key)) {
    return absl::AlreadyExistsError("another thread makes or removes the set of this key");
  }
  set->region = members_.TakeRegion();
  return absl::OkStatus();
}

bool SetTable::ReserveChannels(int channels) {
  const MutexLock lock(&mutex_);
  return members_.TakeChannels(channels);
}

void SetTable::ReleaseChannels(ProcessSet* set) {
  const MutexLock lock(&mutex_);
  members_.GiveChannels(std::exchange(set->channels, 0));
}

absl::StatusOr<int32_t> SetTable::NextLed() {
  const MutexLock lock(&mutex_);
  if (const int32_t led = members_.NextLed(); led != 0) return led;
  return absl::ResourceExhaustedError(
      "this rank has led as many process sets as have numbers; shut down and init again");
}

void SetTable::Release(const ProcessSet& set) {
  const MutexLock lock(&mutex_);
  members_.GiveKey(set.ranks, set.key);
  members_.GiveRegion(set.region);
  members_.GiveChannels(set.channels);
}

void SetTable::Publish(const SetPointer& set) {
  const MutexLock lock(&mutex_);
  sets_.emplace(set->id, set);
  members_.GiveKey(set->ranks, set->key);
}

bool SetTable::Withdraw(const ProcessSet& set) {
  const MutexLock lock(&mutex_);
  if (sets_.erase(set.id) == 0) return false;
  (void)members_.TakeKey(set.ranks, set.key);
  return true;
}

}  // namespace hvd::rt
