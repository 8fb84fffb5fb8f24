// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/epoch_mail.h"

#include <utility>

#include "daemon/members/epoch_token.h"

namespace hvd::daemon {
namespace {

void SetWorld(const Topology& topology, v1::EpochStart* start) {
  for (const HostShape& host : topology.hosts()) {
    v1::WorldHost& shape = *start->add_hosts();
    shape.set_name(host.name);
    shape.set_ranks(host.ranks);
    for (const int rank : host.numbers) shape.add_numbers(rank);
  }
}

void SetState(const EpochState& state, v1::EpochStart* start) {
  start->set_resume_commit(state.resume_commit);
  start->set_root(state.root);
  for (const int rank : state.needy) start->add_needy(rank);
  start->set_rolls_back(state.rolls_back);
  start->set_survivors(state.survivors);
}

}  // namespace

// ---- to the members ----

void EpochMail::SendStart(int slot, const EpochPlan& plan, const EpochGoods& goods) {
  v1::ToWorker message;
  v1::EpochStart& start = *message.mutable_epoch_start();
  start.set_epoch(plan.epoch);
  start.set_token(EpochToken(options_.epoch_secret, plan.epoch));
  start.set_rank(plan.RankIn(slot));
  SetWorld(plan.topology, &start);
  std::vector<int> fds = goods.memory->Descriptors();
  if (goods.elastic) {
    SetState(plan.state, &start);
    start.set_state_files(goods.state_files.size());
    fds.insert(fds.end(), goods.state_files.begin(), goods.state_files.end());
  }
  options_.send(slot, {message.SerializeAsString(), std::move(fds), goods.memory});
}

void EpochMail::KeepArena(int slot, const EpochPlan& plan, Descriptor arena, uint64_t bytes) {
  std::shared_ptr<ArenaBox>& box = arenas_[plan.epoch];
  if (box == nullptr) box = std::make_shared<ArenaBox>(static_cast<int>(plan.slots.size()));
  box->Put(plan.LocalRankOf(slot), std::move(arena), bytes);
}

void EpochMail::KeepTable(v1::EpochTable table) {
  const uint64_t epoch = table.epoch();
  tables_[epoch] = std::move(table);
}

void EpochMail::SendTable(int slot, const EpochPlan& plan) {
  const size_t size = plan.topology.size();
  std::vector<std::string> by_rank(size);
  for (const v1::RankAddress& entry : tables_[plan.epoch].addresses()) {
    if (entry.rank() < size) by_rank[entry.rank()] = entry.address();
  }
  v1::ToWorker message;
  message.mutable_table()->set_epoch(plan.epoch);
  for (std::string& address : by_rank) message.mutable_table()->add_addresses(std::move(address));
  const auto arenas = arenas_.find(plan.epoch);
  if (arenas == arenas_.end()) return Send(slot, message);
  const std::shared_ptr<ArenaBox>& box = arenas->second;
  for (const uint64_t bytes : box->Bytes()) message.mutable_table()->add_arena_bytes(bytes);
  options_.send(slot, {message.SerializeAsString(), box->Descriptors(), box});
}

void EpochMail::SendGo(const EpochAction& action) {
  v1::ToWorker message;
  message.mutable_go()->set_epoch(action.epoch);
  Send(action.slot, message);
}

void EpochMail::SendRefusal(const EpochAction& action) {
  v1::ToWorker message;
  message.mutable_refused()->set_message(action.text);
  message.mutable_refused()->set_epoch(action.epoch);
  message.mutable_refused()->set_removed(action.kind == EpochAction::Kind::kRemove);
  Send(action.slot, message);
}

// ---- to the driver ----

void EpochMail::TellJoined(const EpochAction& action) {
  v1::Event event;
  event.mutable_rank_joined()->set_epoch(action.epoch);
  event.mutable_rank_joined()->set_member(MemberOf(action.slot));
  options_.on_event(std::move(event));
}

void EpochMail::TellStands(const EpochAction& action) {
  v1::Event event;
  event.mutable_member_stands()->set_member(MemberOf(action.slot));
  event.mutable_member_stands()->set_after_epoch(action.epoch);
  options_.on_event(std::move(event));
}

void EpochMail::TellWithdrawn(const EpochAction& action) {
  v1::Event event;
  event.mutable_member_withdrew()->set_member(MemberOf(action.slot));
  event.mutable_member_withdrew()->set_epoch(action.epoch);
  options_.on_event(std::move(event));
}

void EpochMail::TellAddresses(const LocalEpoch& epoch) {
  v1::Event event;
  v1::HostAddresses& host = *event.mutable_host_addresses();
  const EpochPlan& plan = *epoch.plan();
  host.set_epoch(plan.epoch);
  const std::vector<std::string>& addresses = epoch.addresses();
  for (int local_rank = 0; local_rank < static_cast<int>(addresses.size()); ++local_rank) {
    v1::RankAddress& entry = *host.add_addresses();
    entry.set_rank(plan.RankOf(local_rank));
    entry.set_address(addresses[local_rank]);
  }
  options_.on_event(std::move(event));
}

void EpochMail::TellReady(uint64_t epoch) {
  v1::Event event;
  event.mutable_host_ready()->set_epoch(epoch);
  options_.on_event(std::move(event));
}

void EpochMail::TellLeft(const EpochAction& action, const AbortWord& aborted) {
  v1::Event event;
  v1::RankLeft& left = *event.mutable_rank_left();
  left.set_epoch(action.epoch);
  left.set_member(MemberOf(action.slot));
  left.set_aborted(aborted.cause);
  if (aborted.rank >= 0) left.set_abort_rank(aborted.rank);
  if (aborted.unreached >= 0) left.set_unreached(aborted.unreached);
  options_.on_event(std::move(event));
}

void EpochMail::TellQuiet(uint64_t epoch, const KeptCommits& kept) {
  v1::Event event;
  v1::HostQuiet& quiet = *event.mutable_host_quiet();
  quiet.set_epoch(epoch);
  quiet.set_commit(kept.newest);
  quiet.set_before(kept.before);
  quiet.set_steps(kept.steps);
  quiet.set_place(kept.place);
  options_.on_event(std::move(event));
}

}  // namespace hvd::daemon
