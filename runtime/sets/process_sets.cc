// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/process_sets.h"

#include <algorithm>
#include <exception>

#include "base/stable_hash.h"

namespace hvd::rt {
namespace {

// As kOwnName. All changes go under one name, so that ranks that ask for different ones get a
// mismatch.
constexpr char kChangeName[] = "\x01hvd: process sets";
constexpr char kJoinName[] = "\x01hvd: join";
constexpr char kRemovedName[] = "\x01hvd: process set removed";

absl::Status NotInitialized() { return absl::AbortedError("hvd has been shut down meanwhile"); }

absl::Status AgreeOnAdding(const std::vector<int>& ranks, Engine* engine) {
  Request request;
  request.name = kChangeName;
  Signature& signature = request.signature;
  signature.kind = RequestKind::kAddProcessSet;
  signature.group_count = static_cast<int32_t>(ranks.size());
  signature.ndim = std::min(signature.group_count, kMaxDimensions);
  std::copy_n(ranks.begin(), signature.ndim, signature.shape.begin());
  StableHash hash;
  for (const int rank : ranks) hash.Add(static_cast<uint64_t>(rank));
  signature.group_hash = hash.value();
  return engine->Run(&request);
}

absl::Status AgreeOnRemoving(int32_t id, const char* name, Engine* engine) {
  Request request;
  request.name = name;
  request.signature.kind = RequestKind::kRemoveProcessSet;
  request.signature.ndim = 1;
  request.signature.shape[0] = id;
  return engine->Run(&request);
}

// A mismatch is the ranks' disagreement, not a bad argument of this one.
absl::Status AsMismatch(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? absl::FailedPreconditionError(status.message()) : status;
}

}  // namespace

void ProcessSets::Start(SetEngine global, const EngineConfig& config, DeviceFactory make_device) {
  config_ = config;
  make_device_ = std::move(make_device);
  auto set = std::make_shared<ProcessSet>();
  for (int r = 0; r < global.engine->world().topology().size(); ++r) set->ranks.push_back(r);
  set->index = global.engine->world().rank();
  set->engine = std::move(global.engine);
  set->route = global.route;
  entrance_.Open(set.get());
  table_.Start(std::move(set));
  stopping_.store(false);
}

// Others may wait for this rank in any set before they join: so it joins all of them, and then
// waits. When all ranks of the job have joined, so have all members of each set. No set comes or
// goes meanwhile.
absl::StatusOr<size_t> ProcessSets::Join(const std::shared_ptr<SetRequests>& join,
                                         absl::FunctionRef<void()> ready) {
  const MutexLock change(&change_mutex_);
  const ExclusiveLock members(&members_mutex_);
  const std::vector<SetPointer> sets = table_.AsMember();
  if (sets.empty()) return NotInitialized();
  for (const SetPointer& set : sets) {  // all before the first is submitted
    auto request = std::make_unique<Request>();
    request->name = kJoinName;
    request->signature.kind = RequestKind::kJoin;
    join->requests.push_back(std::move(request));
    join->set_engines.emplace_back(set->shared_engine());
  }
  ready();
  joins_.Note(join);
  absl::Status status;
  size_t submitted = 0;
  for (; submitted < sets.size(); ++submitted) {
    status = sets[submitted]->engine->Submit(join->requests[submitted].get());
    if (!status.ok()) break;
  }
  if (submitted == 0) return status;
  for (size_t i = submitted; i < sets.size(); ++i) {
    join->requests[i]->result.status = status;
    join->requests[i]->done.store(true, std::memory_order_release);
  }
  return submitted;
}

// A rank that leaves waits for the others, who may wait for it in another set: so it says in all of
// them that it leaves, the global one first, before it waits. That it does in the order of their
// numbers on every rank, the global one last.
//
// A change that another thread has under way is agreed on the global set: once this rank has left
// that, the change is agreed on all ranks or ends with an error, and then this rank makes it like
// all others, who count on it. Only then is it known which sets there are.
void ProcessSets::Stop() {
  stopping_.store(true);
  for (const SetPointer& set : table_.AsMember()) set->engine->BeginLeave();
  const MutexLock change(&change_mutex_);
  const ExclusiveLock members(&members_mutex_);
  const std::vector<SetPointer> sets = table_.AsMember();
  for (const SetPointer& set : sets) set->engine->BeginLeave();
  // Other threads still see the sets until all their requests are done.
  for (size_t i = 1; i < sets.size(); ++i) sets[i]->engine->FinishLeave();
  if (!sets.empty()) sets[0]->engine->FinishLeave();
  entrance_.Close();
  entrance_.Drop(table_.TakeAll());
}

absl::Status CallTarget::Choose(int32_t id) {
  if (id == HVD_GLOBAL_PROCESS_SET && (set_ = sets_.EnterGlobal()) != nullptr) {
    inside_global_ = true;
    return absl::OkStatus();
  }
  auto set = sets_.FindAsMember(id);
  if (!set.ok()) return set.status();
  held_ = *std::move(set);
  set_ = held_.get();
  return absl::OkStatus();
}

absl::StatusOr<ProcessSets::SetPointer> ProcessSets::FindAsMember(int32_t id) const {
  SetPointer set = Find(id);
  if (set == nullptr)
    return absl::InvalidArgumentError("options.process_set: " + table_.Unknown(id));
  if (set->engine != nullptr) return set;
  return absl::InvalidArgumentError(
      "options.process_set: rank " + std::to_string(set->global_engine->world().rank()) +
      " is no member of " + Describe(*set) + "; only members call its collectives");
}

absl::StatusOr<std::vector<int>> CheckRanks(absl::Span<const int32_t> ranks, int world) {
  if (ranks.empty()) return absl::InvalidArgumentError("a process set has at least one rank");
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  for (const int rank : {sorted.front(), sorted.back()}) {
    if (rank >= 0 && rank < world) continue;
    return absl::InvalidArgumentError("ranks: " + std::to_string(rank) + " is not one of the " +
                                      std::to_string(world) + " ranks");
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return sorted;
  return absl::InvalidArgumentError("ranks: " + std::to_string(*twice) + " is there twice");
}

// Returns the global set for a change. Aborted: there is none, or not for long.
absl::StatusOr<ProcessSets::SetPointer> ProcessSets::Global() const {
  SetPointer global = stopping_.load() ? nullptr : Find(HVD_GLOBAL_PROCESS_SET);
  if (global == nullptr) return NotInitialized();
  return global;
}

// Makes the set's own engine. An error here ends the epoch: the other members count on this rank.
absl::Status ProcessSets::Make(ProcessSet* set) const {
  EpochWorld& job = set->global_engine->world();
  try {
    auto world =
        EpochWorld::ForSet(&job, {set->region, set->ranks, set->id, set->channels, set->memory_at});
    if (world.ok()) {
      SetDevice device;
      if (make_device_ != nullptr) device = make_device_(world->get());
      EngineHelpers helpers = {.tuner = nullptr, .device = std::move(device.work)};
      set->engine = std::make_shared<Engine>(*std::move(world), config_, std::move(helpers));
      set->route = device.route;
      return absl::OkStatus();
    }
    if (absl::IsAborted(world.status())) return world.status();
    return job.waiter().EndEpoch("rank " + std::to_string(set->global_engine->world().rank()) +
                                 " cannot make " + Describe(*set) + ": " +
                                 std::string(world.status().message()));
  } catch (const std::exception& error) {
    job.board().AbortThrown(error, kChangeName);
    throw;
  }
}

absl::Status ProcessSets::Add(absl::Span<const int32_t> ranks, int32_t* id) {
  const MutexLock change(&change_mutex_);
  const absl::StatusOr<SetPointer> found = Global();
  if (!found.ok()) return found.status();
  const SetPointer& global = *found;
  auto sorted = CheckRanks(ranks, static_cast<int>(global->ranks.size()));
  if (!sorted.ok()) return sorted.status();
  absl::Status agreed = AgreeOnAdding(*sorted, global->engine.get());
  if (!agreed.ok()) return AsMismatch(agreed);
  // From here on all ranks go the same way.
  if (const SetPointer same = table_.FindByRanks(*sorted)) {
    *id = same->id;
    return absl::AlreadyExistsError("ranks " + Numbers(*sorted) + " are " + Describe(*same) +
                                    " already; use that one");
  }
  auto set = std::make_shared<ProcessSet>();
  set->region = table_.FreeRegion();
  if (set->region < 0) {
    return absl::ResourceExhaustedError("there are " + std::to_string(kMaxProcessSets - 1) +
                                        " process sets besides the global one already, and room "
                                        "for no more; remove one first");
  }
  const absl::StatusOr<int32_t> next = table_.NextId();
  if (!next.ok()) return next.status();
  set->id = *next;
  set->ranks = *std::move(sorted);
  set->global_engine = global->engine;
  const auto at = std::lower_bound(set->ranks.begin(), set->ranks.end(), global->index);
  if (at != set->ranks.end() && *at == global->index) {
    set->index = static_cast<int>(at - set->ranks.begin());
    const WatchPlace job = global->engine->world().watch();
    set->counted_before.Add(WatchOf(job.page, job.local_rank).metrics[set->region]);
    if (absl::Status made = Make(set.get()); !made.ok()) return made;
  }
  *id = set->id;
  table_.Insert(std::move(set));
  return absl::OkStatus();
}

absl::Status ProcessSets::Remove(int32_t id) {
  if (const SetPointer set = Find(id); set != nullptr && set->channels != 0) {
    return RemoveMembers(set);
  }
  const MutexLock change(&change_mutex_);
  if (id == HVD_GLOBAL_PROCESS_SET) {
    return absl::InvalidArgumentError("process set 0 is all ranks and cannot be removed");
  }
  const absl::StatusOr<SetPointer> found = Global();
  if (!found.ok()) return found.status();
  const SetPointer& global = *found;
  SetPointer set = Find(id);
  if (set == nullptr) return absl::InvalidArgumentError(table_.Unknown(id));
  absl::Status agreed = AgreeOnRemoving(id, kChangeName, global->engine.get());
  if (!agreed.ok()) return AsMismatch(agreed);
  table_.Erase(id);
  if (set->engine != nullptr) set->engine->Shutdown();
  // No member looks at the set's memory any more once all have come here; then it can serve
  // another.
  absl::Status left = AgreeOnRemoving(id, kRemovedName, global->engine.get());
  if (!left.ok()) return AsMismatch(left);
  if (set->engine != nullptr) set->engine->world().GiveMemoryBack();
  return absl::OkStatus();
}

}  // namespace hvd::rt
