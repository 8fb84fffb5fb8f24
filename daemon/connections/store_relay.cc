// SPDX-License-Identifier: Apache-2.0
#include "daemon/connections/store_relay.h"

#include <pthread.h>
#include <sys/epoll.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hvd::daemon {
namespace {

std::string Refusal(StoreOutcome outcome, std::string text) {
  StoreAnswer answer;
  answer.outcome = outcome;
  answer.text = std::move(text);
  return EncodeStoreAnswer(answer).Whole();
}

}  // namespace

StoreRelay::StoreRelay() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "hvdd-store");
    loop_.Run();
  });
}

StoreRelay::~StoreRelay() {
  loop_.Quit();
  thread_.join();
}

// ---- from other threads ----

void StoreRelay::Connect(Send send) {
  loop_.Post([this, send = std::move(send)] {
    send_ = send;
    Pump();
  });
}

void StoreRelay::Adopt(int rank, Descriptor socket, std::string rest) {
  loop_.Post([this, rank, fd = socket.Release(), rest = std::move(rest)] {
    Take(rank, Descriptor(fd), rest);
  });
}

void StoreRelay::Receive(v1::StoreChunk chunk) {
  loop_.Post([this, chunk = std::move(chunk)] { Hear(chunk); });
}

void StoreRelay::EndWaits(std::string cause) {
  loop_.Post([this, cause = std::move(cause)] { AbortCalls(cause, true); });
}

void StoreRelay::Stop(std::string cause) {
  loop_.Post([this, cause = std::move(cause)] {
    if (stopped_.empty()) stopped_ = cause.empty() ? "the job ends" : cause;
    AbortCalls(stopped_, false);
  });
}

// ---- connections ----

void StoreRelay::Take(int rank, Descriptor socket, const std::string& rest) {
  auto peer = std::make_unique<StorePeer>(rank, std::move(socket));
  const int fd = peer->fd();
  if (connections_[rank] >= kMostStoreCalls) CloseGivenUp(rank);
  if (++connections_[rank] > kMostStoreCalls) {
    --connections_[rank];
    peer->Send(Refusal(StoreOutcome::kFull,
                       absl::StrCat("hvd_store: this rank has ", kMostStoreCalls,
                                    " calls under way at once, and more are not taken")));
    peer->Flush();
    return;
  }
  peer->Take(rest);
  peers_[fd] = std::move(peer);
  loop_.Watch(fd, EPOLLIN, [this, fd](uint32_t events) { OnPeer(fd, events); });
  OnPeer(fd, 0);
}

// The loop may hear of a new connection before it hears that an older one has ended.
void StoreRelay::CloseGivenUp(int rank) {
  std::vector<int> gone;
  for (const auto& [fd, peer] : peers_) {
    if (peer->rank() == rank && peer->given_up()) gone.push_back(fd);
  }
  for (const int fd : gone) Close(fd);
}

// A connection has one call at a time, so there is no more to read than that, but for its end.
void StoreRelay::OnPeer(int fd, uint32_t events) {
  StorePeer* peer = peers_[fd].get();
  if ((events & ~EPOLLOUT) != 0 && !peer->Read()) return Close(fd);
  std::string message;
  while (peer->NextMessage(&message)) {
    if (peer->call != 0) return Close(fd);
    OnRequest(peer, std::move(message));
    if (peers_.count(fd) == 0) return;
  }
  if (peer->broken()) return Close(fd);
  if ((events & EPOLLOUT) == 0) return;
  if (!peer->Flush()) return Close(fd);
  Watch(*peer);
}

void StoreRelay::OnRequest(StorePeer* peer, std::string message) {
  if (!stopped_.empty()) return Abort(peer, stopped_);
  peer->call = ++last_call_;
  peer->verb = VerbOf(message);
  calls_[peer->call] = peer->fd();
  StoreParcel parcel;
  parcel.call = peer->call;
  parcel.message.body = std::make_shared<const std::string>(std::move(message));
  sender_.Put(parcel);
  Pump();
}

void StoreRelay::Answer(StorePeer* peer, const std::string& message) {
  calls_.erase(std::exchange(peer->call, 0));
  peer->Send(message);
  if (!peer->Flush()) return Close(peer->fd());
  Watch(*peer);
}

void StoreRelay::Abort(StorePeer* peer, const std::string& cause) {
  const uint64_t call = peer->call;
  Answer(peer, Refusal(StoreOutcome::kAborted, cause));
  if (call != 0) TellGone(call);
}

void StoreRelay::AbortCalls(const std::string& cause, bool waits_only) {
  std::vector<int> meant;
  for (const auto& [call, fd] : calls_) {
    const StoreVerb verb = peers_[fd]->verb;
    const bool waits = verb == StoreVerb::kGet || verb == StoreVerb::kWait;
    if (waits || !waits_only) meant.push_back(fd);
  }
  for (const int fd : meant) Abort(peers_[fd].get(), cause);
}

void StoreRelay::Close(int fd) {
  const std::unique_ptr<StorePeer> peer = std::move(peers_[fd]);
  peers_.erase(fd);
  loop_.Forget(fd);
  --connections_[peer->rank()];
  if (peer->call == 0) return;
  calls_.erase(peer->call);
  TellGone(peer->call);
}

void StoreRelay::Watch(const StorePeer& peer) {
  loop_.Change(peer.fd(), peer.has_backlog() ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

// ---- the driver ----

void StoreRelay::TellGone(uint64_t call) {
  StoreParcel parcel;
  parcel.call = call;
  sender_.Put(parcel);
  Pump();
}

void StoreRelay::Hear(const v1::StoreChunk& chunk) {
  receiver_.Take(chunk.data());
  uint64_t call = 0;
  std::string_view message;
  while (receiver_.Next(&call, &message)) {
    const auto found = calls_.find(call);
    if (found != calls_.end()) Answer(peers_[found->second].get(), std::string(message));
  }
  sender_.Acked(chunk.taken(), Clock::now());
  Pump();
}

// Sends the bytes that may go; the acknowledgement of those that have come goes with them, or
// alone.
void StoreRelay::Pump() {
  if (!send_) return;
  bool sent = true;
  while (sent) {
    v1::StoreChunk chunk;
    chunk.set_data(sender_.Take(Clock::now()));
    chunk.set_taken(receiver_.taken());
    sent = !chunk.data().empty();
    if (sent || told_taken_ != chunk.taken()) send_(chunk);
    told_taken_ = chunk.taken();
  }
}

}  // namespace hvd::daemon
