// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/host_epochs.h"

#include <memory>
#include <utility>

namespace hvd::daemon {

using Kind = EpochAction::Kind;

HostEpochs::HostEpochs(HostEpochsOptions options, WorkerSlots* workers)
    : options_(std::move(options)),
      workers_(workers),
      book_(options_.slots, options_.elastic),
      memories_(options_.memories, workers),
      mail_(options_.mail, workers),
      members_({options_.host_name, options_.elastic, &book(), &memories_, workers}) {}

// ---- what happens ----

// A member that enters the epoch finds no commit that the driver does not mean.
void HostEpochs::Propose(EpochPlan plan) {
  if (options_.elastic) box_.VoidBeyond(plan.state.is_void ? 0 : plan.state.resume_commit);
  Carry(book_.Propose(std::move(plan)));
}

void HostEpochs::Change(uint64_t epoch) {
  if (memories_.Find(epoch) != nullptr || book().plan(epoch) != nullptr) memories_.Change(epoch);
}

// Ranks abort an epoch in its page, of which the rendezvous is not told: who asks for the next one
// has seen it there.
void HostEpochs::Join(int slot) {
  const std::string cause = members_.AbortHeardBy(slot).cause;
  if (!cause.empty() && book().in_live_epoch(slot)) Abort(book().last_epoch(slot), cause);
  Carry(book_.Join(slot));
}

void HostEpochs::TakeAddress(int slot, const v1::Address& address, Descriptor arena) {
  const uint64_t number = address.epoch();
  const EpochActions actions =
      book_.Address(slot, number, address.address(), address.memory_bytes());
  const LocalEpoch* epoch = book().Find(number);
  const bool taken = epoch != nullptr && !epoch->aborted() && epoch->addressed(slot);
  if (arena.valid() && taken) {
    mail_.KeepArena(slot, *epoch->plan(), std::move(arena), address.arena_bytes());
  }
  Carry(actions);
}

void HostEpochs::Leave(int slot, uint64_t epoch) {
  (*workers_)[slot].activity = members_.ActivityOf(slot);
  Carry(book_.Leave(slot, epoch));
}

void HostEpochs::TableCame(v1::EpochTable table) {
  const uint64_t epoch = table.epoch();
  mail_.KeepTable(std::move(table));
  Carry(book_.TableCame(epoch));
  mail_.DropTable(epoch);
  mail_.DropArenas(epoch);
}

void HostEpochs::Gone(int slot, const std::string& cause, bool lives) {
  Carry(book_.Gone(slot, cause, lives));
}

void HostEpochs::Broke(int slot, const std::string& cause, bool lives) {
  WorkerSlot& worker = (*workers_)[slot];
  worker.broke = true;
  worker.activity = members_.ActivityOf(slot);  // before its memory may go
  Gone(slot, cause, lives);
}

// ---- what is done ----

// An epoch that lacks what it needs here ends for its members.
void HostEpochs::Carry(const EpochActions& actions) {
  for (const EpochAction& action : actions) {
    const absl::Status done = CarryOne(action);
    if (!done.ok()) Abort(action.epoch, std::string(done.message()));
  }
}

absl::Status HostEpochs::CarryOne(const EpochAction& action) {
  switch (action.kind) {
    case Kind::kCreate:
      return memories_.Create(*book().plan(action.epoch));
    case Kind::kStart:
      return Start(action);
    case Kind::kTake:
      return memories_.SetFirst(action.epoch, action.bytes);
    case Kind::kAbort:
      if (memories_.Abort(action.epoch, action.text)) options_.on_abort(action.text);
      return absl::OkStatus();
    case Kind::kDispose:
      memories_.Forget(action.epoch);
      mail_.DropArenas(action.epoch);
      return absl::OkStatus();
    default:
      Tell(action);
      return absl::OkStatus();
  }
}

void HostEpochs::Tell(const EpochAction& action) {
  switch (action.kind) {
    case Kind::kStands:
      return mail_.TellStands(action);
    case Kind::kWithdrawn:
      return mail_.TellWithdrawn(action);
    case Kind::kAddresses:
      return mail_.TellAddresses(*book().Find(action.epoch));
    case Kind::kTable:
      return mail_.SendTable(action.slot, *book().plan(action.epoch));
    case Kind::kReady:
      return mail_.TellReady(action.epoch);
    case Kind::kGo:
      return mail_.SendGo(action);
    case Kind::kLeft:
      return NoteLeft(action);
    case Kind::kRefuse:
    case Kind::kRemove:
      return mail_.SendRefusal(action);
    case Kind::kQuiet:
      memories_.Quiet(action.epoch);
      return mail_.TellQuiet(action.epoch, box_.Kept());
    case Kind::kCreate:
    case Kind::kStart:
    case Kind::kTake:
    case Kind::kAbort:
    case Kind::kDispose:
      return;  // done by CarryOne
  }
}

// Without a memory it has been refused already.
absl::Status HostEpochs::Start(const EpochAction& action) {
  EpochGoods goods = {memories_.Find(action.epoch), options_.elastic};
  absl::Status missing;
  if (goods.memory != nullptr && options_.elastic) {
    absl::StatusOr<std::vector<int>> files = box_.FilesOf((*workers_)[action.slot].share);
    missing = files.status();
    if (files.ok()) goods.state_files = *std::move(files);
  }
  if (goods.memory != nullptr && missing.ok()) {
    mail_.SendStart(action.slot, *book().plan(action.epoch), goods);
  }
  mail_.TellJoined(action);
  return missing;
}

void HostEpochs::NoteLeft(const EpochAction& action) {
  AbortWord& aborted = (*workers_)[action.slot].aborted;
  aborted = memories_.AbortOf(action.epoch);
  mail_.TellLeft(action, aborted);
}

}  // namespace hvd::daemon
