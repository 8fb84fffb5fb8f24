// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_transport.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/mutex.h"
#include "proto/hmac_sha256.h"
#include "runtime/transport/address_head.h"
#include "runtime/transport/net_devices.h"
#include "runtime/transport/tcp/address_list.h"
#include "runtime/transport/tcp/dialer.h"
#include "runtime/transport/tcp/doorway.h"
#include "runtime/transport/tcp/peer.h"
#include "runtime/transport/unreached.h"

namespace hvd::rt {
namespace {

class TcpTransport : public Transport, private DoorwayOwner, private DialerOwner {
 public:
  explicit TcpTransport(const TcpOptions& options)
      : options_(options),
        limits_(MailboxLimits::For(options.size)),
        doorway_(options.secret, DoorwayLimits(), &poller_, this) {}
  ~TcpTransport() override;

  absl::Status Open();
  absl::StatusOr<std::string> Address() override;
  absl::Status Connect(const std::vector<std::string>& addresses) override;
  absl::StatusOr<std::unique_ptr<TransportRequest>> Send(int peer, MessageTag tag, const void* data,
                                                         size_t bytes) override;
  absl::StatusOr<std::unique_ptr<TransportRequest>> Receive(int peer, MessageTag tag, void* data,
                                                            size_t bytes) override;
  // Nobody waits for an answer that only progress here could give.
  absl::StatusOr<std::unique_ptr<TransportRequest>> Settle() override { return nullptr; }
  bool Progress() override;
  int EventFd() override { return event_fd_; }
  bool Arm() override;

  // The request was destroyed before it was done.
  template <class Message>
  void Withdraw(int peer, const std::shared_ptr<Message>& message) {
    const MutexLock lock(&mutex_);
    if (message->outcome.pending()) peers_.at(peer)->Withdraw(message);
  }

 private:
  AddressHead Head() const;
  absl::StatusOr<Peer*> PeerOf(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Dial(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Retire(Dialer* dialer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FlushAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BreakAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepTime() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EverybodyIsIn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The poller calls these, while Progress holds the lock for it.
  bool Expects(const LaneName& name) override;
  void OnGuest(const LaneName& name, Socket socket, const std::string& where) override;
  void OnDialed(Dialer* dialer, Socket socket, const std::string& where) override;
  void OnDialFailed(Dialer* dialer, const std::string& why) override;

  const TcpOptions options_;
  // There may be no memory for it when it is needed.
  const absl::Status stopped_status_ = HasStopped();
  const MailboxLimits limits_;
  int event_fd_ = -1;  // the poller's; written by Open, before others know of the transport
  Mutex mutex_;        // also of what these own: peers, lanes, mailboxes
  Poller poller_ ABSL_GUARDED_BY(mutex_);
  Doorway doorway_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> devices_ ABSL_GUARDED_BY(mutex_);  // by address of this host
  std::vector<AddressList> table_ ABSL_GUARDED_BY(mutex_);              // by rank
  std::map<int, std::unique_ptr<Peer>> peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Dialer>> dialers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Peer*> unflushed_ ABSL_GUARDED_BY(mutex_);
  std::vector<Peer*> flushing_ ABSL_GUARDED_BY(mutex_);
};

template <class Message>
class TcpRequest : public TransportRequest {
 public:
  TcpRequest(TcpTransport* transport, int peer, std::shared_ptr<Message> message)
      : transport_(transport), peer_(peer), message_(std::move(message)) {}
  ~TcpRequest() override {
    if (message_->outcome.pending()) transport_->Withdraw(peer_, message_);
  }
  absl::StatusOr<bool> Test() override {
    absl::StatusOr<bool> done = message_->outcome.Test();
    return absl::IsUnavailable(done.status()) ? Unreached(done.status(), peer_) : done;
  }

 private:
  TcpTransport* const transport_;
  const int peer_;
  const std::shared_ptr<Message> message_;
};

TcpTransport::~TcpTransport() {
  for (const auto& [rank, peer] : peers_) peer->SayGoodbye();
}

// The last rank is called by nobody.
absl::Status TcpTransport::Open() {
  if (options_.secret.size() != kSecretBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the epoch's secret has %d bytes instead of %d: hvdd and libhvd are of "
                        "different versions",
                        options_.secret.size(), kSecretBytes));
  }
  const MutexLock lock(&mutex_);
  const NetDevices devices = {ListNetInterfaces(), {}};
  const auto places = AddressesFor(options_.net_devices, options_.reached_at, devices);
  if (!places.ok()) return places.status();
  for (const NetInterface& one : devices.interfaces) {
    for (const std::string& host : one.addresses) devices_[host] = one.name;
  }
  if (absl::Status opened = poller_.Open(); !opened.ok()) return opened;
  event_fd_ = poller_.fd();
  if (options_.rank == options_.size - 1) return absl::OkStatus();
  constexpr int kLeastBacklog = 128;
  return doorway_.Listen(*places, std::max(kLeastBacklog, kLanes * options_.size));
}

AddressHead TcpTransport::Head() const {
  AddressHead head{"tcp", options_.rank, 0};
  const Sha256Digest mark = HmacSha256(options_.secret, "hvd tcp: the mark of addresses");
  memcpy(&head.mark, mark.data(), sizeof(head.mark));
  return head;
}

absl::StatusOr<std::string> TcpTransport::Address() {
  const MutexLock lock(&mutex_);
  return PutAddressHead(Head(), EncodeAddressList({OwnHostName(), doorway_.addresses()}));
}

absl::Status TcpTransport::Connect(const std::vector<std::string>& addresses) {
  if (static_cast<int>(addresses.size()) != options_.size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d addresses for a job of %d ranks", addresses.size(), options_.size));
  }
  const MutexLock lock(&mutex_);
  const AddressHead own = Head();
  for (int rank = 0; rank < options_.size; ++rank) {
    const absl::StatusOr<std::string> rest = TakeAddressHead(own, rank, addresses[rank]);
    if (!rest.ok()) return rest.status();
    absl::StatusOr<AddressList> list = DecodeAddressList(*rest);
    if (!list.ok()) return list.status();
    if (list->addresses.empty() && rank < options_.size - 1) {
      return absl::InvalidArgumentError(absl::StrFormat("rank %d has sent no address", rank));
    }
    for (const PeerAddress& one : list->addresses) doorway_.Know(one.at.Host());
    table_.push_back(*std::move(list));
  }
  return absl::OkStatus();
}

absl::StatusOr<Peer*> TcpTransport::PeerOf(int rank) {
  if (rank < 0 || rank >= static_cast<int>(table_.size()) || rank == options_.rank) {
    return absl::InvalidArgumentError(absl::StrFormat("rank %d is not connected", rank));
  }
  std::unique_ptr<Peer>& peer = peers_[rank];
  if (peer != nullptr) return peer.get();
  peer = std::make_unique<Peer>(absl::StrFormat("rank %d on %s", rank, table_[rank].host), limits_,
                                &poller_, &unflushed_);
  if (rank < options_.rank) Dial(rank);
  return peer.get();
}

void TcpTransport::Dial(int rank) {
  DialerOwner* const owner = this;
  std::vector<std::string> own;
  for (const auto& [host, device] : devices_) own.push_back(host);
  // The user's order, where there is one, is better than our guess.
  const std::string likely = options_.net_devices.empty() ? options_.reached_from : "";
  DialPlan plan{.secret = options_.secret,
                .name = {},
                .addresses = InCallingOrder(table_[rank].addresses, likely, own),
                .limit = options_.connect_limit,
                .devices = devices_};
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    plan.name = {static_cast<uint32_t>(options_.rank), static_cast<uint32_t>(rank), lane};
    dialers_.push_back(std::make_unique<Dialer>(plan, &poller_, owner));
  }
  KeepTime();
}

absl::StatusOr<std::unique_ptr<TransportRequest>> TcpTransport::Send(int peer, MessageTag tag,
                                                                     const void* data,
                                                                     size_t bytes) {
  auto message = std::make_shared<Outbound>();
  message->tag = tag;
  message->data = static_cast<const std::byte*>(data);
  message->bytes = bytes;
  const MutexLock lock(&mutex_);
  if (stopped()) return HasStopped();
  const absl::StatusOr<Peer*> to = PeerOf(peer);
  if (!to.ok()) return to.status();
  (*to)->Give(message);
  return std::make_unique<TcpRequest<Outbound>>(this, peer, std::move(message));
}

absl::StatusOr<std::unique_ptr<TransportRequest>> TcpTransport::Receive(int peer, MessageTag tag,
                                                                        void* data, size_t bytes) {
  auto message = std::make_shared<Inbound>();
  message->tag = tag;
  message->data = static_cast<std::byte*>(data);
  message->bytes = bytes;
  const MutexLock lock(&mutex_);
  if (stopped()) return HasStopped();
  const absl::StatusOr<Peer*> from = PeerOf(peer);
  if (!from.ok()) return from.status();
  (*from)->Post(message);
  return std::make_unique<TcpRequest<Inbound>>(this, peer, std::move(message));
}

bool TcpTransport::Progress() {
  const MutexLock lock(&mutex_);
  if (stopped()) {
    BreakAll();
    return false;
  }
  const bool moved = poller_.Run();
  if (moved) KeepTime();
  FlushAll();
  return moved;
}

// The peers are told that this rank leaves: that is no failure of theirs, and why the epoch has
// ended they hear from those whose words it is.
void TcpTransport::BreakAll() {
  for (const auto& [rank, peer] : peers_) {
    try {
      peer->SayGoodbye();
    } catch (const std::bad_alloc&) {  // then it finds the connection closed
    }
    peer->Break(stopped_status_);
  }
}

// Messages that the peers wait for go out before this rank sleeps.
bool TcpTransport::Arm() {
  const MutexLock lock(&mutex_);
  FlushAll();
  return true;
}

void TcpTransport::FlushAll() {
  if (unflushed_.empty()) return;
  flushing_.swap(unflushed_);
  for (Peer* peer : flushing_) peer->Flush();
  flushing_.clear();
}

void TcpTransport::KeepTime() {
  if (dialers_.empty() && doorway_.due() == Clock::time_point::max()) {
    return poller_.WakeAt(Clock::time_point::max());
  }
  const Clock::time_point now = Clock::now();
  doorway_.OnTime(now);
  std::vector<Dialer*> dialers;
  for (const auto& dialer : dialers_) dialers.push_back(dialer.get());
  for (Dialer* dialer : dialers) dialer->OnTime(now);
  Clock::time_point due = doorway_.due();
  for (const auto& dialer : dialers_) due = std::min(due, dialer->due());
  poller_.WakeAt(due);
}

bool TcpTransport::Expects(const LaneName& name) {
  mutex_.AssertHeld();
  const auto me = static_cast<uint32_t>(options_.rank);
  if (name.called != me || name.caller <= me || name.caller >= table_.size()) return false;
  if (name.lane >= kLanes) return false;
  const absl::StatusOr<Peer*> peer = PeerOf(static_cast<int>(name.caller));
  return peer.ok() && !(*peer)->attached(static_cast<int>(name.lane));
}

bool TcpTransport::EverybodyIsIn() const {
  for (int rank = options_.rank + 1; rank < options_.size; ++rank) {
    const auto found = peers_.find(rank);
    if (found == peers_.end() || !found->second->attached()) return false;
  }
  return true;
}

void TcpTransport::OnGuest(const LaneName& name, Socket socket, const std::string& where) {
  mutex_.AssertHeld();
  const int rank = static_cast<int>(name.caller);
  peers_.at(rank)->Attach(static_cast<int>(name.lane), std::move(socket), where);
  if (EverybodyIsIn()) doorway_.Close();
}

void TcpTransport::OnDialed(Dialer* dialer, Socket socket, const std::string& where) {
  mutex_.AssertHeld();
  const LaneName name = dialer->name();
  Retire(dialer);
  peers_.at(static_cast<int>(name.called))
      ->Attach(static_cast<int>(name.lane), std::move(socket), where);
}

void TcpTransport::OnDialFailed(Dialer* dialer, const std::string& why) {
  mutex_.AssertHeld();
  const auto& peer = peers_.at(static_cast<int>(dialer->name().called));
  Retire(dialer);
  peer->Break(absl::UnavailableError(
      absl::StrCat("cannot connect from ", OwnHostName(), " to ", peer->name(), " at ", why,
                   options_.net_devices.empty()
                       ? "; have the hosts a network in common, without a firewall in it? "
                         "--network-interfaces names the interfaces to use"
                       : absl::StrCat("; other interfaces than ", options_.net_devices,
                                      " may do: --network-interfaces names them, and without it "
                                      "all are tried"))));
}

void TcpTransport::Retire(Dialer* dialer) {
  const auto at = std::find_if(dialers_.begin(), dialers_.end(),
                               [dialer](const auto& one) { return one.get() == dialer; });
  dialers_.erase(at);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeTcpTransport(const TcpOptions& options) {
  auto transport = std::make_unique<TcpTransport>(options);
  if (absl::Status opened = transport->Open(); !opened.ok()) return opened;
  return transport;
}

}  // namespace hvd::rt
