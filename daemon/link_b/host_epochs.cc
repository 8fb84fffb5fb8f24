// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_b/host_epochs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/link_b/epoch_token.h"

namespace hvd {

using Kind = EpochAction::Kind;

HostEpochs::HostEpochs(HostEpochsOptions options, WorkerSlots* workers)
    : options_(std::move(options)), workers_(workers), book_(options_.slots, options_.elastic) {}

// ---- what happens ----

// A member that enters the epoch finds no commit that the driver does not mean.
void HostEpochs::Propose(EpochPlan plan) {
  if (options_.elastic) box_.VoidBeyond(plan.state.is_void ? 0 : plan.state.resume_commit);
  Carry(book_.Propose(std::move(plan)));
}

void HostEpochs::Change(uint64_t epoch) {
  const auto found = memories_.find(epoch);
  if (found != memories_.end()) return found->second->SetChange();
  const EpochPlan* const plan = book().plan(epoch);
  if (plan != nullptr) changing_.insert(epoch);
}

// Ranks abort an epoch in its page, of which the rendezvous is not told: who asks for the next one
// has seen it there.
void HostEpochs::Join(int slot) {
  const std::string cause = AbortHeardBy(slot).cause;
  if (!cause.empty() && book().in_live_epoch(slot)) Abort(book().last_epoch(slot), cause);
  Carry(book_.Join(slot));
}

void HostEpochs::TakeAddress(int slot, const v1::Address& address, Descriptor arena) {
  const uint64_t epoch = address.epoch();
  const EpochActions actions =
      book_.Address(slot, epoch, address.address(), address.memory_bytes());
  const LocalEpoch* taken = book().Find(epoch);
  if (arena.valid() && taken != nullptr && !taken->aborted() && taken->addressed(slot)) {
    std::shared_ptr<ArenaBox>& box = arenas_[epoch];
    const EpochPlan& plan = *book().plan(epoch);
    if (box == nullptr) box = std::make_shared<ArenaBox>(static_cast<int>(plan.slots.size()));
    box->Put(plan.LocalRankOf(slot), std::move(arena), address.arena_bytes());
  }
  Carry(actions);
}

void HostEpochs::Leave(int slot, uint64_t epoch) {
  KeepActivity(slot);
  Carry(book_.Leave(slot, epoch));
}

void HostEpochs::TableCame(v1::EpochTable table) {
  const uint64_t epoch = table.epoch();
  tables_[epoch] = std::move(table);
  Carry(book_.TableCame(epoch));
  tables_.erase(epoch);
  arenas_.erase(epoch);  // they are under way
}

// ---- what is done ----

void HostEpochs::Carry(const EpochActions& actions) {
  for (const EpochAction& action : actions) CarryOne(action);
}

void HostEpochs::CarryOne(const EpochAction& action) {
  switch (action.kind) {
    case Kind::kCreate:
      return Create(action);
    case Kind::kStart:
      return Start(action);
    case Kind::kStands:
      return TellStands(action);
    case Kind::kWithdrawn:
      return TellWithdrawn(action);
    case Kind::kTake:
      return Take(action);
    case Kind::kAddresses:
      return TellAddresses(action.epoch);
    case Kind::kTable:
      return SendTable(action);
    case Kind::kReady:
      return TellReady(action.epoch);
    case Kind::kGo:
      return SendGo(action);
    case Kind::kLeft:
      return TellLeft(action);
    case Kind::kAbort:
      return MarkAborted(action);
    case Kind::kRefuse:
      return SendRefusal(action);
    case Kind::kDispose:
      return Forget(action.epoch);
    case Kind::kQuiet:
      return TellQuiet(action.epoch);
    case Kind::kRemove:
      return SendRefusal(action);
  }
}

void HostEpochs::Create(const EpochAction& action) {
  const EpochPlan& plan = *book().plan(action.epoch);
  EpochShape shape;
  shape.epoch = action.epoch;
  shape.slots = plan.slots;
  for (const int slot : plan.slots) shape.members.push_back(MemberOf(slot));
  const absl::Span<const int> ranks = plan.topology.ranks_of(plan.host);
  shape.ranks.assign(ranks.begin(), ranks.end());
  shape.several_hosts = plan.topology.hosts().size() > 1;
  absl::StatusOr<std::shared_ptr<EpochMemory>> memory = EpochMemory::Create(shape);
  if (!memory.ok()) return Abort(action.epoch, std::string(memory.status().message()));
  options_.on_create(memory->get());
  if (changing_.erase(action.epoch) != 0) (*memory)->SetChange();
  memories_[action.epoch] = *std::move(memory);
}

void HostEpochs::Start(const EpochAction& action) {
  SendStart(action);
  v1::Event event;
  event.mutable_rank_joined()->set_epoch(action.epoch);
  event.mutable_rank_joined()->set_member(MemberOf(action.slot));
  options_.on_event(std::move(event));
}

void HostEpochs::SendStart(const EpochAction& action) {
  const auto found = memories_.find(action.epoch);
  if (found == memories_.end()) return;  // refused already
  const EpochPlan& plan = *book().plan(action.epoch);
  v1::ToWorker message;
  v1::EpochStart& start = *message.mutable_epoch_start();
  start.set_epoch(action.epoch);
  start.set_token(EpochToken(options_.epoch_secret, action.epoch));
  start.set_rank(plan.RankOf(plan.LocalRankOf(action.slot)));
  for (const HostShape& host : plan.topology.hosts()) {
    v1::WorldHost& shape = *start.add_hosts();
    shape.set_name(host.name);
    shape.set_ranks(host.ranks);
    for (const int rank : host.numbers) shape.add_numbers(rank);
  }
  std::vector<int> fds = found->second->Descriptors();
  if (options_.elastic) {
    const absl::Status added = AddState(action, &start, &fds);
    if (!added.ok()) return Abort(action.epoch, std::string(added.message()));
  }
  options_.send(action.slot, {message.SerializeAsString(), std::move(fds), found->second});
}

absl::Status HostEpochs::AddState(const EpochAction& action, v1::EpochStart* start,
                                  std::vector<int>* fds) {
  const EpochState& state = book().plan(action.epoch)->state;
  start->set_resume_commit(state.resume_commit);
  start->set_root(state.root);
  for (const int rank : state.needy) start->add_needy(rank);
  start->set_rolls_back(state.rolls_back);
  start->set_survivors(state.survivors);
  const auto files = box_.FilesOf((*workers_)[action.slot].share);
  if (!files.ok()) return files.status();
  start->set_state_files(files->size());
  fds->insert(fds->end(), files->begin(), files->end());
  return absl::OkStatus();
}

void HostEpochs::TellStands(const EpochAction& action) {
  v1::Event event;
  event.mutable_member_stands()->set_member(MemberOf(action.slot));
  event.mutable_member_stands()->set_after_epoch(action.epoch);
  options_.on_event(std::move(event));
}

void HostEpochs::TellWithdrawn(const EpochAction& action) {
  v1::Event event;
  event.mutable_member_withdrew()->set_member(MemberOf(action.slot));
  event.mutable_member_withdrew()->set_epoch(action.epoch);
  options_.on_event(std::move(event));
}

void HostEpochs::Take(const EpochAction& action) {
  const auto found = memories_.find(action.epoch);
  if (found == memories_.end()) return;
  const absl::Status taken = found->second->SetFirst(action.bytes);
  if (!taken.ok()) Abort(action.epoch, std::string(taken.message()));
}

void HostEpochs::TellAddresses(uint64_t epoch) {
  v1::Event event;
  event.mutable_host_addresses()->set_epoch(epoch);
  const EpochPlan& plan = *book().plan(epoch);
  const std::vector<std::string>& addresses = book().Find(epoch)->addresses();
  for (int local_rank = 0; local_rank < static_cast<int>(addresses.size()); ++local_rank) {
    v1::RankAddress& entry = *event.mutable_host_addresses()->add_addresses();
    entry.set_rank(plan.RankOf(local_rank));
    entry.set_address(addresses[local_rank]);
  }
  options_.on_event(std::move(event));
}

void HostEpochs::SendTable(const EpochAction& action) {
  const size_t size = book().plan(action.epoch)->topology.size();
  std::vector<std::string> by_rank(size);
  for (const v1::RankAddress& entry : tables_[action.epoch].addresses()) {
    if (entry.rank() < size) by_rank[entry.rank()] = entry.address();
  }
  v1::ToWorker message;
  message.mutable_table()->set_epoch(action.epoch);
  for (std::string& address : by_rank) message.mutable_table()->add_addresses(std::move(address));
  const auto arenas = arenas_.find(action.epoch);
  if (arenas == arenas_.end()) return Send(action.slot, message);
  const std::shared_ptr<ArenaBox>& box = arenas->second;
  for (const uint64_t bytes : box->Bytes()) message.mutable_table()->add_arena_bytes(bytes);
  options_.send(action.slot, {message.SerializeAsString(), box->Descriptors(), box});
}

void HostEpochs::TellReady(uint64_t epoch) {
  v1::Event event;
  event.mutable_host_ready()->set_epoch(epoch);
  options_.on_event(std::move(event));
}

void HostEpochs::SendGo(const EpochAction& action) {
  v1::ToWorker message;
  message.mutable_go()->set_epoch(action.epoch);
  Send(action.slot, message);
}

void HostEpochs::TellLeft(const EpochAction& action) {
  const auto memory = memories_.find(action.epoch);
  AbortWord& aborted = (*workers_)[action.slot].aborted;
  aborted = memory != memories_.end() ? memory->second->aborted() : AbortWord();
  v1::Event event;
  v1::RankLeft& left = *event.mutable_rank_left();
  left.set_epoch(action.epoch);
  left.set_member(MemberOf(action.slot));
  left.set_aborted(aborted.cause);
  if (aborted.rank >= 0) left.set_abort_rank(aborted.rank);
  if (aborted.unreached >= 0) left.set_unreached(aborted.unreached);
  options_.on_event(std::move(event));
}

void HostEpochs::MarkAborted(const EpochAction& action) {
  const auto found = memories_.find(action.epoch);
  if (found == memories_.end()) return;
  found->second->Abort(action.text);
  options_.on_abort(action.text);
}

void HostEpochs::SendRefusal(const EpochAction& action) {
  v1::ToWorker message;
  message.mutable_refused()->set_message(action.text);
  message.mutable_refused()->set_epoch(action.epoch);
  message.mutable_refused()->set_removed(action.kind == Kind::kRemove);
  Send(action.slot, message);
}

void HostEpochs::TellQuiet(uint64_t epoch) {
  changing_.erase(epoch);
  v1::Event event;
  event.mutable_host_quiet()->set_epoch(epoch);
  const KeptCommits kept = box_.Kept();
  event.mutable_host_quiet()->set_commit(kept.newest);
  event.mutable_host_quiet()->set_before(kept.before);
  event.mutable_host_quiet()->set_steps(kept.steps);
  event.mutable_host_quiet()->set_place(kept.place);
  options_.on_event(std::move(event));
}

// The epoch's memory goes; what it said stays.
void HostEpochs::Forget(uint64_t epoch) {
  const auto found = memories_.find(epoch);
  if (found == memories_.end()) return;
  options_.on_forget();
  const EpochMemory& memory = *found->second;
  for (int local_rank = 0; local_rank < memory.local_size(); ++local_rank) {
    WorkerSlot& worker = (*workers_)[memory.slot_of(local_rank)];
    if (memory.IsOf(worker.member, local_rank)) worker.counts.Add(memory.Counts(local_rank));
  }
  memories_.erase(found);
  arenas_.erase(epoch);
}

// ---- what can be seen ----

int HostEpochs::RankOf(int slot) const {
  const EpochPlan* plan = book().plan(book().last_epoch(slot));
  if (plan == nullptr) plan = book().newest_plan(slot);
  return plan == nullptr ? slot : plan->RankOf(plan->LocalRankOf(slot));
}

std::string HostEpochs::Name(int slot) const {
  if (options_.elastic && book().newest_plan(slot) == nullptr) {
    return absl::StrCat("a new member on ", options_.host_name);
  }
  return absl::StrCat("rank ", RankOf(slot), " on ", options_.host_name);
}

std::string HostEpochs::ActivityOf(int slot) const {
  const auto found = memories_.find(book().last_epoch(slot));
  if (found == memories_.end()) return (*workers_)[slot].activity;
  return found->second->Activity(found->second->LocalRankOf(slot));
}

RankTotals HostEpochs::CountsOf(int slot) const {
  RankTotals totals = (*workers_)[slot].counts;
  for (const auto& [epoch, memory] : memories_) {
    const int local_rank = memory->LocalRankOf(slot);
    const bool its = local_rank >= 0 && memory->IsOf(MemberOf(slot), local_rank);
    if (its) totals.Add(memory->Counts(local_rank));
  }
  return totals;
}

AbortWord HostEpochs::AbortHeardBy(int slot) const {
  if (book().left(slot)) return (*workers_)[slot].aborted;
  const auto found = memories_.find(book().last_epoch(slot));
  return found == memories_.end() ? AbortWord() : found->second->aborted();
}

}  // namespace hvd
