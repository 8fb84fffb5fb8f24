// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/doorway.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

namespace hvd::rt {
namespace {

// At one go: who comes in great numbers must not keep us from the peers.
constexpr int kAcceptsPerTurn = 16;
constexpr auto kPause = std::chrono::milliseconds(100);

}  // namespace

// A listening socket.
class Doorway::Door : public Watched {
 public:
  Door(Doorway* doorway, Socket socket)
      : doorway_(doorway), poller_(doorway->poller_), socket_(std::move(socket)) {}
  ~Door() override { poller_->Close(&socket_); }
  void OnReady(uint32_t) override { doorway_->Accept(socket_); }
  absl::Status Watch(uint32_t events) { return poller_->Watch(socket_, events, this); }

 private:
  Doorway* const doorway_;
  Poller* const poller_;  // outlives the doorway
  Socket socket_;
};

// Somebody who has proven nothing.
class Doorway::Guest : public Watched {
 public:
  Guest(Doorway* doorway, Socket socket, std::string challenge)
      : doorway_(doorway),
        poller_(doorway->poller_),
        socket_(std::move(socket)),
        challenge_(std::move(challenge)) {}
  ~Guest() override { poller_->Close(&socket_); }

  absl::Status Begin() {
    const absl::StatusOr<size_t> sent = SendSome(socket_, challenge_.data(), challenge_.size());
    if (!sent.ok()) return sent.status();
    if (*sent != challenge_.size()) return absl::UnavailableError("it takes no words");
    return poller_->Watch(socket_, EPOLLIN, this);
  }
  void OnReady(uint32_t) override {
    const size_t had = answer_.size();
    answer_.resize(kAnswerBytes);
    const absl::StatusOr<size_t> n =
        ReceiveSome(socket_, answer_.data() + had, answer_.size() - had);
    answer_.resize(had + (n.ok() ? *n : 0));
    if (!n.ok()) return doorway_->Drop(this);
    if (answer_.size() == kAnswerBytes) doorway_->OnAnswer(this);
  }

  Socket& socket() { return socket_; }
  const std::string& challenge() const { return challenge_; }
  const std::string& answer() const { return answer_; }

  const Clock::time_point came = Clock::now();
  bool is_known = false;
  std::string where;

 private:
  Doorway* const doorway_;
  Poller* const poller_;
  Socket socket_;
  const std::string challenge_;
  std::string answer_;
};

Doorway::Doorway(std::string secret, const DoorwayLimits& limits, Poller* poller,
                 DoorwayOwner* owner)
    : secret_(std::move(secret)), limits_(limits), poller_(poller), owner_(owner) {}
Doorway::~Doorway() = default;

absl::Status Doorway::Listen(const std::vector<NetAddress>& places, int backlog) {
  absl::Status problem = absl::InvalidArgumentError("this host has no address to listen at");
  for (const NetAddress& place : places) {
    absl::StatusOr<SocketAddress> address = MakeSocketAddress(place.host, 0);
    absl::StatusOr<Socket> socket =
        address.ok() ? ListenAt(&*address, backlog) : absl::StatusOr<Socket>(address.status());
    if (socket.ok()) {
      auto door = std::make_unique<Door>(this, *std::move(socket));
      problem = door->Watch(EPOLLIN);
      if (!problem.ok()) continue;
      addresses_.push_back({*address, place.device});
      doors_.push_back(std::move(door));
    } else {
      problem = socket.status();
    }
  }
  return addresses_.empty() ? problem : absl::OkStatus();
}

void Doorway::Close() {
  for (auto& door : doors_) poller_->Bury(std::move(door));
  doors_.clear();
  for (auto& guest : guests_) poller_->Bury(std::move(guest));
  guests_.clear();
}

void Doorway::Accept(const Socket& door) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    SocketAddress from;
    from.length = sizeof(from.storage);
    Socket socket(accept4(door.fd(), from.get(), &from.length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.open()) {
      Welcome(std::move(socket), from);
      continue;
    }
    const bool none_left =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (!none_left) return;
    if (DropOne()) continue;
    // Nothing can be done for the moment, and the door must not be looked at again and again.
    for (const auto& one : doors_) (void)one->Watch(0).ok();
    open_again_ = Clock::now() + kPause;
    return;
  }
}

void Doorway::Welcome(Socket socket, const SocketAddress& from) {
  const absl::StatusOr<std::string> nonce = MakeNonce();
  if (!nonce.ok()) return;
  auto guest = std::make_unique<Guest>(this, std::move(socket), MakeChallenge(*nonce));
  guest->is_known = known_.count(from.Host()) != 0;
  guest->where = from.Text();
  if (!guest->Begin().ok()) return;
  if (guests_.size() >= limits_.guests) DropOne();
  guests_.push_back(std::move(guest));
}

bool Doorway::DropOne() {
  if (guests_.empty()) return false;
  const auto stranger = std::find_if(guests_.begin(), guests_.end(),
                                     [](const auto& guest) { return !guest->is_known; });
  Drop((stranger != guests_.end() ? *stranger : guests_.front()).get());
  return true;
}

void Doorway::Drop(Guest* guest) {
  const auto at = std::find_if(guests_.begin(), guests_.end(),
                               [guest](const auto& one) { return one.get() == guest; });
  if (at == guests_.end()) return;
  poller_->Close(&guest->socket());
  poller_->Bury(std::move(*at));
  guests_.erase(at);
}

void Doorway::OnAnswer(Guest* guest) {
  const auto name = CheckAnswer(secret_, guest->challenge(), guest->answer());
  if (!name.has_value() || !owner_->Expects(*name)) return Drop(guest);
  const std::string words = MakeConfirmation(secret_, guest->challenge(), guest->answer());
  const absl::StatusOr<size_t> sent = SendSome(guest->socket(), words.data(), words.size());
  if (!sent.ok() || *sent != words.size()) return Drop(guest);
  Socket socket = std::move(guest->socket());
  const std::string where = guest->where;
  Drop(guest);
  owner_->OnGuest(*name, std::move(socket), where);
}

void Doorway::OnTime(Clock::time_point now) {
  while (!guests_.empty() && now >= guests_.front()->came + limits_.time) {
    Drop(guests_.front().get());
  }
  if (now < open_again_) return;
  open_again_ = Clock::time_point::max();
  for (const auto& door : doors_) (void)door->Watch(EPOLLIN).ok();
}

Clock::time_point Doorway::due() const {
  return guests_.empty() ? open_again_
                         : std::min(open_again_, guests_.front()->came + limits_.time);
}

}  // namespace hvd::rt
