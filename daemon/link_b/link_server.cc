// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_b/link_server.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace hvd::daemon {

LinkServer::LinkServer(LinkServerOptions options)
    : options_(std::move(options)),
      workers_(options_.slots),
      connections_(&loop_, options_.slots, Handlers()),
      epochs_(EpochOptions(), &workers_),
      traces_(&loop_, &epochs_.memories(), std::move(options_.trace)),
      pending_(&loop_, &epochs_,
               {options_.slots, options_.stall, options_.on_event,
                [this](int slot) { return PidOf(slot); }}),
      // The recording ends with the last worker.
      ends_(Parts(), [this] { traces_.End(); }),
      words_(Parts(), {options_.job, options_.slots, options_.store}, &ends_) {
  connections_.Listen(std::move(options_.listener));
  loop_.Post([this] {
    pending_.Begin();
    if (options_.timeline) traces_.Switch(true);
  });
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "hvdd-links");
    loop_.Run();
  });
}

LinkServer::~LinkServer() {
  loop_.Quit();
  thread_.join();
}

ConnectionHandlers LinkServer::Handlers() {
  ConnectionHandlers handlers;
  handlers.on_message = [this](LinkPeer* peer, const std::string& bytes) {
    words_.OnMessage(peer, bytes);
  };
  handlers.on_lost = [this](const LinkPeer& peer, const char* how) { ends_.LinkEnded(peer, how); };
  handlers.on_stranger = [this](std::string text) {
    v1::Event event;
    event.mutable_notice()->set_text(std::move(text));
    options_.on_event(std::move(event));
  };
  return handlers;
}

HostEpochsOptions LinkServer::EpochOptions() {
  HostEpochsOptions epochs;
  epochs.slots = options_.slots;
  epochs.elastic = options_.elastic;
  epochs.host_name = options_.host_name;
  epochs.mail.epoch_secret = options_.epoch_secret;
  epochs.mail.on_event = options_.on_event;
  epochs.mail.send = [this](int slot, SlotMessage message) {
    connections_.Send(slot, std::move(message));
  };
  epochs.memories.on_create = [this](EpochMemory* memory) { traces_.Follow(memory); };
  epochs.memories.on_forget = [this] { traces_.TakeAll(); };
  // The keys that ranks wait for in the store may never come.
  epochs.on_abort = [this](const std::string& cause) { options_.store->EndWaits(cause); };
  return epochs;
}

LinkParts LinkServer::Parts() {
  return {&loop_, &connections_, &epochs_, &workers_, options_.elastic, options_.on_event};
}

int LinkServer::SlotOf(uint64_t member) const {
  const auto found =
      std::find_if(workers_.begin(), workers_.end(),
                   [member](const WorkerSlot& each) { return each.member == member; });
  return found == workers_.end() ? -1 : static_cast<int>(found - workers_.begin());
}

int LinkServer::PidOf(int slot) const {
  const LinkPeer* speaker = connections_.SpeakerOf(slot);
  return speaker != nullptr ? speaker->pid() : workers_[slot].pid;
}

// ---- from other threads ----

void LinkServer::Expect(const v1::SpawnSlots& spawn) {
  loop_.Post([this, spawn] {
    for (const v1::Seat& seat : spawn.seats()) ExpectOne(seat);
  });
}

// In an elastic job the slot may have been another's, whose end has been told.
void LinkServer::ExpectOne(const v1::Seat& seat) {
  const int slot = static_cast<int>(seat.slot());
  WorkerSlot& worker = workers_[slot];
  if (options_.elastic && worker.member != 0) {
    connections_.Reset(slot);
    epochs_.Reset(slot);
    words_.SetToken(slot, "");
    worker = WorkerSlot();
  }
  worker.member = seat.member();
  worker.share = options_.elastic ? static_cast<int>(seat.share()) : slot;
}

void LinkServer::Remove(int slot, std::string cause) {
  loop_.Post([this, slot, cause = std::move(cause)] { epochs_.Remove(slot, cause); });
}

void LinkServer::Change(const v1::EpochChange& change) {
  loop_.Post([this, epoch = change.epoch()] { epochs_.Change(epoch); });
}

void LinkServer::Propose(EpochPlan plan) {
  loop_.Post([this, plan = std::move(plan)] { epochs_.Propose(plan); });
}

void LinkServer::Retire(int slot, std::string cause) {
  loop_.Post([this, slot, cause = std::move(cause)] { epochs_.Gone(slot, cause, true); });
}

void LinkServer::AddDoor(int slot, Descriptor door, std::string token) {
  loop_.Post([this, slot, door = door.Release(), token = std::move(token)] {
    words_.SetToken(slot, token);
    connections_.AddDoor(slot, Descriptor(door));
  });
}

void LinkServer::MemberStarted(int slot, int pid) {
  loop_.Post([this, slot, pid] { workers_[slot].pid = pid; });
}

void LinkServer::MemberEnded(RankDeath death, std::function<void(const RankDeath&)> reply) {
  loop_.Post([this, death = std::move(death), reply = std::move(reply)]() mutable {
    death.link = ends_.ProcessEnded(death);
    reply(death);
  });
}

void LinkServer::TableCame(v1::EpochTable table) {
  loop_.Post([this, table = std::move(table)] { epochs_.TableCame(table); });
}

void LinkServer::GoCame(uint64_t epoch) {
  loop_.Post([this, epoch] { epochs_.GoCame(epoch); });
}

void LinkServer::Abort(uint64_t epoch, std::string cause) {
  loop_.Post([this, epoch, cause = std::move(cause)] { epochs_.Abort(epoch, cause); });
}

void LinkServer::Stop(std::string cause) {
  loop_.Post([this, cause = std::move(cause)] {
    epochs_.Stop(cause);
    options_.store->Stop(cause);
    ends_.Close();
  });
}

void LinkServer::Close(std::string cause) {
  loop_.Post([this, cause = std::move(cause)] {
    epochs_.Close(cause);
    ends_.Close();
  });
}

void LinkServer::SetTimeline(v1::SetTimeline set) {
  loop_.Post([this, set = std::move(set)] {
    if (set.error().empty()) traces_.Switch(set.on());
    const int slot = SlotOf(set.member());
    if (!set.answer() || slot < 0) return;
    v1::ToWorker message;
    message.mutable_timeline_answer()->set_error(set.error());
    connections_.Send(slot, {message.SerializeAsString()});
  });
}

void LinkServer::AskPending() {
  loop_.Post([this] { pending_.Tell(); });
}

}  // namespace hvd::daemon
