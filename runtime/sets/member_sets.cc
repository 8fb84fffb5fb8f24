// SPDX-License-Identifier: Apache-2.0
// Process sets that only their members know.
#include <algorithm>

#include "base/mutex.h"
#include "runtime/sets/member_agreement.h"
#include "runtime/sets/process_sets.h"

namespace hvd::rt {
namespace {

absl::StatusOr<std::shared_ptr<ProcessSet>> AsMemberOf(const ProcessSet& global,
                                                       std::vector<int> ranks) {
  auto set = std::make_shared<ProcessSet>();
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), global.index);
  if (at == ranks.end() || *at != global.index) {
    return absl::InvalidArgumentError("ranks: rank " + std::to_string(global.index) +
                                      " is not among them; only members make such a set");
  }
  set->index = static_cast<int>(at - ranks.begin());
  set->ranks = std::move(ranks);
  set->global_engine = global.engine;
  return set;
}

}  // namespace

absl::Status ProcessSets::AddMembers(absl::Span<const int32_t> ranks, std::string_view key,
                                     int32_t* id) {
  const ReaderLock members(&members_mutex_);
  const absl::StatusOr<SetPointer> global = Global();
  if (!global.ok()) return global.status();
  auto sorted = CheckRanks(ranks, static_cast<int>((*global)->ranks.size()));
  if (!sorted.ok()) return sorted.status();
  auto member = AsMemberOf(**global, *std::move(sorted));
  if (!member.ok()) return member.status();
  const std::shared_ptr<ProcessSet> set = *std::move(member);
  set->key = key;
  if (absl::Status reserved = table_.Reserve(set.get(), id); !reserved.ok()) return reserved;
  EpochWorld& job = set->global_engine->world();
  if (set->region != 0) {
    set->counted_before.Add(WatchOf(job.page(), job.place().local_rank).metrics[set->region]);
  }
  MemberAgreement agreement(&table_, &stopping_, set.get());
  absl::Status made = agreement.Agree();
  if (made.ok()) made = agreement.Place();
  if (made.ok()) made = Make(set.get());
  // Once they have agreed the others count on this rank.
  if (!made.ok() && set->id != HVD_GLOBAL_PROCESS_SET) {
    made = job.waiter().EndEpoch("rank " + std::to_string(job.rank()) + " cannot make " +
                                 Describe(*set) + ": " + std::string(made.message()));
  }
  if (!made.ok()) {
    table_.Release(*set);
    return made;
  }
  *id = set->id;
  table_.Publish(set);
  return absl::OkStatus();
}

// Its members leave it first; once all have come here, nobody looks at its memory any more.
absl::Status ProcessSets::RemoveMembers(const SetPointer& set) {
  const ReaderLock members(&members_mutex_);
  if (!table_.Withdraw(*set)) return absl::InvalidArgumentError("it is removed already");
  set->engine->Shutdown();
  ProcessSet mine = *set;
  const absl::Status met = MemberAgreement(&table_, &stopping_, &mine).Meet();
  if (met.ok()) set->engine->world().GiveMemoryBack();
  table_.Release(*set);
  return met;
}

}  // namespace hvd::rt
