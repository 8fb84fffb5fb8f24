// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/pairs.h"

#include <cstring>
#include <utility>

namespace hvd::rt {

Pairs::Pairs(EpochWorld* world) : world_(world) {}

void Pairs::Submit(Request* request) {
  const MutexLock lock(&news_mutex_);
  news_.push_back({request, news_round_});
  active_.store(true, std::memory_order_release);
}

void Pairs::SetAway(PairWord word) {
  const MutexLock lock(&news_mutex_);
  news_away_ = word;
  if (word == PairWord::kAsks) ++news_round_;
  active_.store(true, std::memory_order_release);
}

// Together: what was submitted before this rank went away is never answered as missing.
void Pairs::TakeNews() {
  const MutexLock lock(&news_mutex_);
  begun_.insert(begun_.end(), news_.begin(), news_.end());
  news_.clear();
  if (round_ != news_round_) owes_ = true;
  away_ = news_away_;
  round_ = news_round_;
  bool idle = begun_.empty() && ended_.empty() && !listens();
  for (const auto& [rank, peer] : peers_) idle = idle && peer.idle();
  if (idle) active_.store(false, std::memory_order_release);
}

absl::StatusOr<bool> Pairs::Step() {
  TakeNews();
  bool moved = !begun_.empty();
  while (!begun_.empty()) {
    if (absl::Status begun = Begin(begun_.front()); !begun.ok()) return begun;
  }
  if (listens()) {
    if (absl::Status listens = Listen(); !listens.ok()) return listens;
  }
  for (auto& [rank, peer] : peers_) {
    if (peer.idle() && !listens()) continue;
    const absl::StatusOr<bool> stepped = StepPeer(rank, &peer);
    if (!stepped.ok()) return stepped;
    moved = moved || *stepped;
  }
  if (moved) world_->waiter().Ring();
  return moved;
}

absl::StatusOr<Pairs::Peer*> Pairs::PeerAt(int rank) {
  Peer& peer = peers_[rank];
  if (peer.link != nullptr) return &peer;
  auto link = world_->pair_links().To(rank);
  if (!link.ok()) return link.status();
  peer.link = *std::move(link);
  return &peer;
}

// A rank that is away, or was, has nothing pending with most, and answers all.
absl::Status Pairs::Listen() {
  for (int rank = 0; rank < world_->topology().size(); ++rank) {
    if (rank == world_->rank() || !world_->pair_links().MayBeUsed(rank)) continue;
    const absl::StatusOr<Peer*> peer = PeerAt(rank);
    if (!peer.ok()) return peer.status();
    AnswerAway(*peer);
  }
  return absl::OkStatus();
}

// Begins the request of begun_'s first news.
absl::Status Pairs::Begin(const News& news) {
  Request* request = news.request;
  const uint32_t round = news.round;
  const absl::StatusOr<Peer*> found = PeerAt(request->peer);
  if (!found.ok()) return found.status();
  Peer& peer = **found;
  auto owned = std::make_unique<PairTask>();
  PairTask* task = owned.get();
  task->request = request;
  peer.tasks.emplace(task, std::move(owned));
  begun_.pop_front();
  task->notice = NoticeOf(*request, world_->watch().set);
  task->notice.key.round = round;
  const bool sends = task->notice.key.side == PairSide::kSends;
  if (sends) task->notice.parcel = peer.parcels++;
  task->bytes = task->notice.bytes();
  task->data = static_cast<std::byte*>(sends ? const_cast<void*>(request->buffers.input)
                                             : request->buffers.output);
  peer.to_say.push_back({task->notice, task});
  const std::optional<PairNotice> theirs = peer.book.Ask(task->notice.key, task);
  return theirs ? Meet(request->peer, &peer, task, *theirs) : absl::OkStatus();
}

// Whoever asks after a join that is over knows that this rank is about to come back from it. A rank
// that is back answers what was asked before.
void Pairs::AnswerAway(Peer* peer) {
  const bool back = away_ == PairWord::kAsks;
  const uint32_t round = away_ == PairWord::kLeft ? UINT32_MAX : back ? round_ - 1 : round_;
  for (const PairNotice& theirs : peer->book.TakeUnanswered(round)) {
    PairNotice answer;
    answer.set = theirs.set;
    answer.word = back ? PairWord::kJoined : away_;
    answer.key = theirs.key;
    answer.key.side = Opposite(theirs.key.side);
    peer->to_say.push_back({answer, nullptr});
  }
}

absl::StatusOr<bool> Pairs::StepPeer(int rank, Peer* peer) {
  const absl::StatusOr<bool> said = Say(peer);
  if (!said.ok()) return said;
  const absl::StatusOr<bool> heard = Hear(rank, peer);
  if (!heard.ok()) return heard;
  std::vector<Parcel*> done;
  const absl::StatusOr<bool> moved = peer->link->Step(&done);
  if (!moved.ok()) return moved;
  for (Parcel* parcel : done) {
    auto* task = static_cast<PairTask*>(parcel);
    task->settled = true;
    Settle(peer, task);
  }
  bool left = false;
  for (; peer->gone < peer->link->gone(); ++peer->gone, left = true) {
    PairTask* task = peer->said.front();
    peer->said.pop_front();
    if (task == nullptr) continue;
    task->told = true;
    Settle(peer, task);
  }
  return *said || *heard || *moved || left;
}

absl::StatusOr<bool> Pairs::Say(Peer* peer) {
  bool moved = false;
  while (!peer->to_say.empty()) {
    const absl::StatusOr<bool> sent = peer->link->Send(peer->to_say.front().notice);
    if (!sent.ok()) return sent;
    if (!*sent) break;
    peer->said.push_back(peer->to_say.front().task);
    peer->to_say.pop_front();
    moved = true;
  }
  return moved;
}

absl::StatusOr<bool> Pairs::Hear(int rank, Peer* peer) {
  bool moved = false;
  PairNotice theirs;
  for (;;) {
    const absl::StatusOr<bool> came = peer->link->Receive(&theirs);
    if (!came.ok()) return came;
    if (!*came) return moved;
    moved = true;
    PairTask* task = peer->book.Hear(theirs);
    if (task == nullptr) continue;
    if (absl::Status met = Meet(rank, peer, task, theirs); !met.ok()) return met;
  }
}

// Both sides come here with the same two notices.
absl::Status Pairs::Meet(int rank, Peer* peer, PairTask* task, const PairNotice& theirs) {
  Request* request = task->request;
  request->result.status = CheckMeeting(
      {task->notice, theirs, world_->GlobalRank(world_->rank()), world_->GlobalRank(rank)});
  const bool sends = task->notice.key.side == PairSide::kSends;
  if (request->result.status.ok() && !task->notice.is_inline()) {
    task->number = sends ? task->notice.parcel : theirs.parcel;
    task->begun = true;
    return sends ? peer->link->BeginSend(task) : peer->link->BeginReceive(task);
  }
  if (request->result.status.ok() && !sends && task->bytes > 0) {
    std::memcpy(task->data, theirs.data, task->bytes);
  }
  task->settled = true;
  Settle(peer, task);
  return absl::OkStatus();
}

// The other side waits for this rank's notice, so it must have gone before this rank goes on.
void Pairs::Settle(Peer* peer, PairTask* task) {
  if (!task->told || !task->settled) return;
  ended_.push_back(task->request);
  peer->tasks.erase(task);
}

std::vector<Request*> Pairs::TakeEnded() { return std::exchange(ended_, {}); }

bool Pairs::HasParcels() const {
  for (const auto& [rank, peer] : peers_) {
    for (const auto& [task, owned] : peer.tasks) {
      if (task->begun && !task->settled) return true;
    }
  }
  return false;
}

std::vector<PendingRequest> Pairs::Pending() {
  std::vector<PendingRequest> waiting;
  for (const News& news : begun_) waiting.push_back({nullptr, news.request});
  for (const auto& [rank, peer] : peers_) {
    for (const auto& [task, owned] : peer.tasks) {
      if (!task->settled) waiting.push_back({nullptr, task->request, task->begun});
    }
  }
  const MutexLock lock(&news_mutex_);
  for (const News& news : news_) waiting.push_back({nullptr, news.request});
  return waiting;
}

void Pairs::TakeAll(absl::FunctionRef<void(Request*)> end) {
  for (Request* request : ended_) end(request);
  ended_.clear();
  for (const News& news : begun_) end(news.request);
  begun_.clear();
  for (const auto& [rank, peer] : peers_) {
    for (const auto& [task, owned] : peer.tasks) end(task->request);
  }
  peers_.clear();
  const MutexLock lock(&news_mutex_);
  for (const News& news : news_) end(news.request);
  news_.clear();
  active_.store(false, std::memory_order_release);
}

}  // namespace hvd::rt
