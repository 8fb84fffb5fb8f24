// SPDX-License-Identifier: Apache-2.0
// Host's part for hvdd's links thread: what LinkServer does with workers' words and ends.
#include <csignal>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "tests/simulator/elastic/world.h"

namespace hvd::elastic_simulator {

daemon::HostEpochsOptions Host::EpochOptions() {
  daemon::HostEpochsOptions options;
  options.slots = static_cast<int>(slots_.size());
  options.elastic = true;
  options.host_name = name_;
  options.mail.epoch_secret = std::string(32, 's');
  options.mail.on_event = [this](v1::Event event) {
    if (event.has_host_quiet() && world_->mutant == Mutant::kBegunCounts) {
      v1::HostQuiet& quiet = *event.mutable_host_quiet();
      quiet.set_commit(std::max(quiet.commit(), written_));
    }
    const bool hides = world_->mutant == Mutant::kCutUntold && event.has_rank_left();
    if (hides) event.mutable_rank_left()->clear_unreached();
    Emit(std::move(event));
  };
  options.mail.send = [this](int slot, daemon::SlotMessage message) {
    SendToWorker(slot, std::move(message));
  };
  options.memories.on_create = [](daemon::EpochMemory*) {};
  options.memories.on_forget = [] {};
  options.on_abort = [](const std::string&) {};
  return options;
}

bool Host::LinksReady() const {
  if (!links_.empty()) return true;
  for (const Worker* const worker : slots_) {
    if (worker != nullptr && (!worker->outbox.empty() || worker->eof_sent)) return true;
  }
  return false;
}

// A word of another thread's, or of some worker: in any order.
void Host::StepLinks() {
  std::vector<Worker*> heard;
  for (Worker* const worker : slots_) {
    if (worker != nullptr && (!worker->outbox.empty() || worker->eof_sent)) heard.push_back(worker);
  }
  const uint32_t choices = static_cast<uint32_t>(heard.size()) + (links_.empty() ? 0 : 1);
  const uint32_t chosen = world_->scheduler.random().Below(choices);
  if (chosen < heard.size()) return Hear(heard[chosen]);
  const auto next = std::move(links_.front());
  links_.pop_front();
  next();
}

void Host::Hear(Worker* worker) {
  if (worker->outbox.empty()) {
    worker->eof_sent = false;
    return OnLost(worker);
  }
  const v1::ToDaemon message = std::move(worker->outbox.front());
  worker->outbox.pop_front();
  const int slot = worker->seat().slot;
  switch (message.kind_case()) {
    case v1::ToDaemon::kJoin:
      return epochs_->Join(slot);
    case v1::ToDaemon::kAddress:
      return epochs_->TakeAddress(slot, message.address(), Descriptor());
    case v1::ToDaemon::kReady:
      return epochs_->Ready(slot, message.ready().epoch());
    case v1::ToDaemon::kLeave:
      return epochs_->Leave(slot, message.leave().epoch());
    default:
      return;
  }
}

void Host::HearOut(Worker* worker) {
  while (worker != nullptr && !worker->outbox.empty()) Hear(worker);
}

// As MemberEnds::LinkEnded. A process that has ended is spoken of by the shim at once.
void Host::OnLost(Worker* worker) {
  const int slot = worker->seat().slot;
  if (!epochs_->book().in_epoch(slot)) return epochs_->StandsNoMore(slot);
  if (!worker->lives()) return;
  v1::Event event;
  v1::RankBroke& broke = *event.mutable_rank_broke();
  broke.set_message(absl::StrCat(epochs_->members().Name(slot), " broke its link"));
  broke.set_member(workers_[slot].member);
  epochs_->Broke(slot, broke.message(), world_->mutant != Mutant::kLostIsGone);
  Emit(std::move(event));
}

void Host::Expect(const v1::SpawnSlots& spawn) {
  for (const v1::Seat& seat : spawn.seats()) {
    const int slot = static_cast<int>(seat.slot());
    daemon::WorkerSlot& worker = workers_[slot];
    if (worker.member != 0) {
      epochs_->Reset(slot);
      worker = daemon::WorkerSlot();
    }
    worker.member = seat.member();
    worker.share = static_cast<int>(seat.share());
  }
}

// As MemberEnds::ProcessEnded.
daemon::LinkFacts Host::EndOf(const daemon::RankDeath& death) {
  const int slot = death.slot;
  HearOut(slots_[slot]);
  daemon::LinkFacts facts = epochs_->members().FactsOf(slot);
  facts.kept = epochs_->Kept();
  facts.cause = absl::StrCat(epochs_->members().Name(slot), " ", death.how());
  epochs_->Gone(slot, facts.cause);
  workers_[slot].ended = true;
  return facts;
}

void Host::SendToWorker(int slot, daemon::SlotMessage message) {
  Worker* const worker = slots_[slot];
  if (worker == nullptr || !worker->lives() || worker->link_broken) return;
  FromDaemon received;
  received.message.ParseFromString(message.bytes);
  received.raw = std::move(message);
  if (world_->mutant == Mutant::kBeyondForgotten && received.message.has_epoch_start()) {
    received.message.mutable_epoch_start()->set_resume_commit(resumes_at_);
  }
  worker->Receive(std::move(received));
}

// ---- mutants ----

uint64_t Host::LocalEpoch(uint64_t epoch) {
  return world_->mutant == Mutant::kLocalEpochs ? counted_ : epoch;
}

void Host::SayQuietEarly(uint64_t epoch) {
  const daemon::EpochPlan* const plan = epochs_->book().plan(epoch);
  if (plan == nullptr) return;
  v1::Event quiet;
  quiet.mutable_host_quiet()->set_epoch(epoch);
  quiet.mutable_host_quiet()->set_commit(epochs_->Kept().newest);
  Emit(std::move(quiet));
  for (const int slot : plan->slots) {
    v1::Event stands;
    stands.mutable_member_stands()->set_member(workers_[slot].member);
    stands.mutable_member_stands()->set_after_epoch(epoch);
    Emit(std::move(stands));
  }
}

}  // namespace hvd::elastic_simulator
