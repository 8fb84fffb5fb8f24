// SPDX-License-Identifier: Apache-2.0
#include "daemon/connections/connections.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/descriptor_mail.h"

namespace hvd::daemon {
namespace {

// More than the ranks of a host that may come at once; two descriptors each.
constexpr size_t kMostUnclaimed = 256;
constexpr auto kClaimTime = std::chrono::seconds(5);
constexpr auto kCrowdedRetry = std::chrono::milliseconds(2);

}  // namespace

Connections::Connections(Loop* loop, int slots, ConnectionHandlers handlers)
    : loop_(loop), handlers_(std::move(handlers)), doors_(slots), speakers_(slots, -1) {}

// ---- who comes ----

void Connections::Listen(Descriptor listener) {
  listener_ = std::move(listener);
  if (!listener_.valid()) return;
  loop_->Watch(listener_.get(), EPOLLIN, [this](uint32_t) { OnListener(); });
}

void Connections::Reset(int slot) {
  if (SpeakerOf(slot) != nullptr) Close(speakers_[slot]);
  if (!doors_[slot].valid()) return;
  loop_->Forget(doors_[slot].get());
  doors_[slot].Reset();
}

void Connections::AddDoor(int slot, Descriptor door) {
  doors_[slot] = std::move(door);
  loop_->Watch(doors_[slot].get(), EPOLLIN, [this, slot](uint32_t) { OnDoor(slot); });
}

void Connections::OnDoor(int slot) {
  char token[64];
  std::vector<Descriptor> fds;
  const ssize_t n = ReceiveMail(doors_[slot].get(), token, sizeof(token), &fds);
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0) {
    // Every holder of the door has closed it; the way back remains.
    loop_->Forget(doors_[slot].get());
    doors_[slot].Reset();
    return;
  }
  if (fds.size() == 1) Adopt(std::move(fds[0]));
}

void Connections::OnListener() {
  Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.valid()) Adopt(std::move(socket));
}

void Connections::Adopt(Descriptor socket) {
  auto peer = std::make_unique<LinkPeer>(std::move(socket));
  if (!peer->trusted()) return TellOfStranger(*peer, "belongs to another user");
  const int fd = peer->fd();
  peers_[fd] = std::move(peer);
  loop_->Watch(fd, EPOLLIN, [this, fd](uint32_t events) { OnPeer(fd, events); });
  AwaitClaim(fd);
}

// A rank says at once who it is, so the oldest of many silent ones is none.
void Connections::AwaitClaim(int fd) {
  if (unclaimed_.size() >= kMostUnclaimed) {
    TurnAway(*peers_[unclaimed_.front().first], "said nothing, and many more came");
  }
  unclaimed_.emplace_back(fd, Clock::now() + kClaimTime);
  if (unclaimed_.size() == 1) LookForClaims();
}

void Connections::LookForClaims() {
  while (!unclaimed_.empty() && unclaimed_.front().second <= Clock::now()) {
    TurnAway(*peers_[unclaimed_.front().first], "did not say which rank it is");
  }
  loop_->Cancel(claim_timer_);
  if (unclaimed_.empty()) return;
  claim_timer_ = loop_->At(unclaimed_.front().second, [this] { LookForClaims(); });
}

void Connections::NoLongerUnclaimed(int fd) {
  const auto found = std::find_if(unclaimed_.begin(), unclaimed_.end(),
                                  [fd](const auto& waiting) { return waiting.first == fd; });
  if (found != unclaimed_.end()) unclaimed_.erase(found);
}

// ---- what they say and are told ----

LinkPeer* Connections::SpeakerOf(int slot) const {
  const auto found = peers_.find(speakers_[slot]);
  return found == peers_.end() ? nullptr : found->second.get();
}

void Connections::SpeaksFor(int slot, LinkPeer* peer) {
  NoLongerUnclaimed(peer->fd());
  peer->slot = slot;
  speakers_[slot] = peer->fd();
}

void Connections::HearOut(int slot) {
  if (SpeakerOf(slot) != nullptr) OnPeer(speakers_[slot], 0);
}

void Connections::OnPeer(int fd, uint32_t events) {
  LinkPeer* peer = peers_[fd].get();
  bool alive = peer->Read();
  std::string message;
  while (peer->NextMessage(&message)) {
    handlers_.on_message(peer, message);
    if (peers_.count(fd) == 0) return;
  }
  if (peer->deaf()) return Close(fd, "asks hvdd again and again and reads no answer");
  if (peer->broken()) return TurnAway(*peer, kSentNoMessage);
  if ((events & EPOLLOUT) != 0 && alive) alive = peer->Flush();
  if (!alive) return Close(fd);
  WatchPeer(*peer);
}

void Connections::Send(int slot, SlotMessage message) {
  LinkPeer* peer = SpeakerOf(slot);
  if (peer == nullptr) return;
  peer->Send(message.bytes, std::move(message.fds), std::move(message.keep));
  peer->Flush();  // a broken link shows as its end of file
  WatchPeer(*peer);
}

// Waits for room to send what is left; where it is not the socket that is full, for a moment.
void Connections::WatchPeer(const LinkPeer& peer) {
  const int fd = peer.fd();
  const bool full = peer.has_backlog() && !peer.crowded();
  loop_->Change(fd, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
  if (!peer.crowded()) return;
  loop_->At(Clock::now() + kCrowdedRetry, [this, fd] {
    const auto found = peers_.find(fd);
    if (found == peers_.end() || !found->second->crowded()) return;
    if (!found->second->Flush()) return Close(fd);
    WatchPeer(*found->second);
  });
}

// ---- who goes ----

void Connections::SendLast(LinkPeer* peer, std::string_view bytes) {
  peer->Send(bytes, {}, nullptr);
  peer->Flush();
  Close(peer->fd());
}

void Connections::Close(int fd, const char* how) {
  const auto found = peers_.find(fd);
  if (found == peers_.end()) return;
  const std::unique_ptr<LinkPeer> peer = std::move(found->second);
  peers_.erase(found);
  loop_->Forget(fd);
  NoLongerUnclaimed(fd);
  if (peer->slot < 0 || speakers_[peer->slot] != fd) return;
  speakers_[peer->slot] = -1;
  handlers_.on_lost(*peer, how);
}

void Connections::TurnAway(const LinkPeer& peer, const char* how) {
  if (peer.slot < 0) TellOfStranger(peer, how);
  Close(peer.fd(), how);
}

// Once a job: there may be any number of them, and they must not fill the terminal.
void Connections::TellOfStranger(const LinkPeer& peer, const char* how) {
  if (std::exchange(told_of_stranger_, true)) return;
  handlers_.on_stranger(absl::StrCat("process ", peer.pid(),
                                     " came to hvdd and is no rank of this job: it ", how,
                                     "; it was turned away, and any other will be without a word"));
}

Connections::Released Connections::Release(LinkPeer* peer) {
  const int fd = peer->fd();
  loop_->Forget(fd);
  NoLongerUnclaimed(fd);
  Released released;
  released.rest = peer->TakeRest();
  released.socket = peer->TakeSocket();
  peers_.erase(fd);
  return released;
}

}  // namespace hvd::daemon
