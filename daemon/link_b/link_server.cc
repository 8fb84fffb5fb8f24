// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_b/link_server.h"

#include <pthread.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/process_end.h"
#include "daemon/watch/process_state.h"

namespace hvd {
namespace {

// A dying process closes its sockets before its pidfd speaks; its parent's word on how it ended
// comes right after.
constexpr auto kWordOfShim = std::chrono::milliseconds(200);

}  // namespace

LinkServer::LinkServer(LinkServerOptions options)
    : options_(std::move(options)),
      workers_(options_.slots),
      connections_(&loop_, options_.slots, Handlers()),
      epochs_(EpochOptions(), &workers_),
      traces_(&loop_, &epochs_.memories(), std::move(options_.trace)),
      pending_(&loop_, &epochs_,
               {options_.slots, options_.stall, options_.on_event,
                [this](int slot) { return PidOf(slot); }}) {
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
    OnMessage(peer, bytes);
  };
  handlers.on_lost = [this](const LinkPeer& peer, const char* how) { OnLost(peer, how); };
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
    workers_[slot].token = token;
    connections_.AddDoor(slot, Descriptor(door));
  });
}

void LinkServer::MemberStarted(int slot, int pid) {
  loop_.Post([this, slot, pid] { workers_[slot].pid = pid; });
}

void LinkServer::MemberEnded(MemberEnd end, std::function<void(LinkFacts)> reply) {
  loop_.Post([this, end = std::move(end), reply = std::move(reply)] { End(end, reply); });
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
    closing_ = true;
    if (options_.elastic) LookAtEnd();
  });
}

void LinkServer::Close(std::string cause) {
  loop_.Post([this, cause = std::move(cause)] {
    epochs_.Close(cause);
    closing_ = true;
    if (options_.elastic) LookAtEnd();
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

// ---- the end of a member ----

void LinkServer::End(const MemberEnd& end, const std::function<void(LinkFacts)>& reply) {
  const int slot = end.slot;
  connections_.HearOut(slot);
  LinkFacts facts = FactsOf(slot);
  workers_[slot].pid = -1;
  absl::string_view when = "";
  if (!facts.joined) when = " before hvd's init";
  if (facts.joined && !facts.left) when = " without hvd's shutdown";
  facts.cause = absl::StrCat(epochs_.members().Name(slot), " ", end.how, when);
  if (!facts.spoken_for) epochs_.Gone(slot, facts.cause);
  workers_[slot].ended = true;
  if (end.well && !epochs_.book().removed(slot)) closing_ = true;
  if (closing_ || !options_.elastic) LookAtEnd();
  reply(facts);
}

// The recording ends with the last worker; in an elastic job others may come after it.
void LinkServer::LookAtEnd() {
  const bool all = std::all_of(workers_.begin(), workers_.end(), [](const WorkerSlot& each) {
    return each.ended || each.member == 0;
  });
  if (all && !std::exchange(traces_ended_, true)) traces_.End();
}

LinkFacts LinkServer::FactsOf(int slot) {
  LinkFacts facts = epochs_.members().FactsOf(slot);
  if (options_.elastic) facts.kept = epochs_.Kept();
  // A wrapper may end before the process that speaks for its rank.
  const LinkPeer* speaker = connections_.SpeakerOf(slot);
  facts.spoken_for =
      speaker != nullptr && speaker->pid() != workers_[slot].pid && !speaker->Ended(0);
  return facts;
}

// ---- the end of a link ----

void LinkServer::OnLost(const LinkPeer& peer, const char* how) {
  const Attendance& book = epochs_.book();
  if (!book.in_epoch(peer.slot)) return LostOutside(peer);
  if (book.in_live_epoch(peer.slot)) return Lost(peer, how);
  // An aborted epoch may be left without a word: by a process that will try again, or by its end.
  if (options_.elastic) return LostAfterAbort(peer, how);
  if (!peer.Ended(0)) return epochs_.Abandon(peer.slot);
  epochs_.Gone(peer.slot, absl::StrCat(epochs_.members().Name(peer.slot), " has left the job"));
}

// Elastic: nobody hears of a proposal there. If the member's own process, a wrapper, has ended
// before, this one was its last.
void LinkServer::LostOutside(const LinkPeer& peer) {
  if (!options_.elastic) return;
  epochs_.StandsNoMore(peer.slot);
  if (!workers_[peer.slot].ended) return;
  epochs_.Gone(peer.slot, absl::StrCat(epochs_.members().Name(peer.slot), " has ended"));
}

// Elastic: the others' next epoch waits for it, as it may write into what it has mapped. A process
// that is on its way out closes its link first; its end is told by the shim.
void LinkServer::LostAfterAbort(const LinkPeer& peer, const char* how) {
  std::optional<int> status = peer.end_status();
  if (!StateOf(peer.pid()).exiting && !peer.Ended(0)) return Broke(peer.slot, how);
  if (peer.pid() == workers_[peer.slot].pid) return;
  if (!status.has_value()) status = peer.end_status();
  LostWorker(peer, status);
}

void LinkServer::Lost(const LinkPeer& peer, const char* how) {
  // While it is on its way out, the kernel tells anybody how; its parent may take that away.
  std::optional<int> status = peer.end_status();
  // In this order: of one that is reaped in between nothing is left but its end.
  if (!StateOf(peer.pid()).exiting && !peer.Ended(0)) return GaveUp(peer.slot, how);
  if (peer.pid() != workers_[peer.slot].pid) {
    if (!status.has_value()) status = peer.end_status();
    return LostWorker(peer, status);
  }
  // How it ended comes from the shim at once; without that word this is all there is to say.
  loop_.At(Clock::now() + kWordOfShim, [this, slot = peer.slot] {
    if (epochs_.book().in_live_epoch(slot)) DiedSomehow(slot);
  });
}

// A process that lives has closed its link. One that has ended the epoch by itself may do so before
// this process has heard of that.
void LinkServer::GaveUp(int slot, const char* how) {
  const AbortWord heard = epochs_.members().AbortHeardBy(slot);
  if (options_.elastic || heard.cause.empty()) return Broke(slot, how);
  epochs_.Abort(epochs_.book().last_epoch(slot), heard.cause);
  epochs_.Abandon(slot);
}

void LinkServer::Broke(int slot, const std::string& how) {
  v1::RankBroke broke;
  broke.set_message(absl::StrCat(epochs_.members().Name(slot), " ", how));
  TellBroke(slot, std::move(broke));
}

void LinkServer::DiedSomehow(int slot) {
  v1::RankBroke broke;
  broke.mutable_worker();
  broke.set_message(absl::StrCat(epochs_.members().Name(slot), " died"));
  TellBroke(slot, std::move(broke));
}

// The process that spoke for the rank is none that the shim started: nobody else says how it ended.
void LinkServer::LostWorker(const LinkPeer& peer, std::optional<int> status) {
  v1::RankBroke broke;
  v1::WorkerEnd& worker = *broke.mutable_worker();
  worker.set_pid(peer.pid());
  worker.set_known(status.has_value());
  if (status.has_value() && WIFSIGNALED(*status)) worker.set_signal(WTERMSIG(*status));
  if (status.has_value() && WIFSIGNALED(*status)) worker.set_core_dumped(WCOREDUMP(*status));
  if (status.has_value() && WIFEXITED(*status)) worker.set_exit_code(WEXITSTATUS(*status));
  worker.set_wrapper(ProcessName(workers_[peer.slot].pid));
  broke.set_message(absl::StrCat(epochs_.members().Name(peer.slot), ": its worker (pid ",
                                 peer.pid(), ") ",
                                 status.has_value() ? DescribeEnd(*status) : "died"));
  TellBroke(peer.slot, std::move(broke));
}

void LinkServer::TellBroke(int slot, v1::RankBroke broke) {
  epochs_.Broke(slot, broke.message(), broke.worker().pid() == 0);
  broke.set_member(workers_[slot].member);
  if (options_.elastic) {
    const KeptCommits kept = epochs_.Kept();
    broke.set_commit(kept.newest);
    broke.set_steps(kept.steps);
    broke.set_place(kept.place);
  }
  v1::Event event;
  *event.mutable_rank_broke() = std::move(broke);
  options_.on_event(std::move(event));
}

}  // namespace hvd
