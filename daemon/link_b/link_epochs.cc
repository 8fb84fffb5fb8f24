// The part of LinkServer that carries out what the HostRendezvous decides.
#include <sys/epoll.h>

#include <utility>

#include "daemon/link_b/epoch_token.h"
#include "daemon/link_b/link_server.h"

namespace hvd {

namespace {

using Kind = EpochAction::Kind;

constexpr auto kCrowdedRetry = std::chrono::milliseconds(2);

}  // namespace

void LinkServer::Carry(const EpochActions& actions) {
  for (const EpochAction& action : actions) {
    v1::ToWorker message;
    v1::Event event;
    switch (action.kind) {
      case Kind::kCreate:
        Create(action);
        break;
      case Kind::kStart:
        SendStart(action);
        event.mutable_rank_joined()->set_epoch(action.epoch);
        event.mutable_rank_joined()->set_rank(options_.first_rank + action.rank);
        options_.on_event(std::move(event));
        break;
      case Kind::kAddresses:
        TellAddresses(action.epoch);
        break;
      case Kind::kTable:
        SendTable(action);
        break;
      case Kind::kReady:
        event.mutable_host_ready()->set_epoch(action.epoch);
        options_.on_event(std::move(event));
        break;
      case Kind::kGo:
        message.mutable_go()->set_epoch(action.epoch);
        SendTo(action.rank, message.SerializeAsString());
        break;
      case Kind::kLeft:
        TellLeft(action);
        break;
      case Kind::kAbort:
        if (memories_.count(action.epoch) == 0) break;
        memories_[action.epoch]->Abort(action.text);
        options_.store->EndWaits(action.text);  // what they wait for may never come
        break;
      case Kind::kRefuse:
        message.mutable_refused()->set_message(action.text);
        SendTo(action.rank, message.SerializeAsString());
        break;
      case Kind::kDispose:
        Forget(action.epoch);
        break;
    }
  }
}

void LinkServer::TellLeft(const EpochAction& action) {
  const auto memory = memories_.find(action.epoch);
  AbortWord& aborted = ranks_[action.rank].aborted;
  aborted = memory != memories_.end() ? memory->second->aborted() : AbortWord();
  v1::Event event;
  v1::RankLeft& left = *event.mutable_rank_left();
  left.set_epoch(action.epoch);
  left.set_rank(options_.first_rank + action.rank);
  left.set_aborted(aborted.cause);
  if (aborted.rank >= 0) left.set_abort_rank(aborted.rank);
  options_.on_event(std::move(event));
}

void LinkServer::Create(const EpochAction& action) {
  EpochShape shape;
  shape.epoch = action.epoch;
  shape.bytes = action.bytes;
  shape.local_size = options_.local_size;
  shape.several_hosts = options_.hosts.size() > 1;
  absl::StatusOr<std::shared_ptr<EpochMemory>> memory = EpochMemory::Create(shape);
  if (!memory.ok()) return Carry(book_.Abort(action.epoch, std::string(memory.status().message())));
  (*memory)->SetTracing(tracing_);
  memories_[action.epoch] = *std::move(memory);
}

void LinkServer::SendStart(const EpochAction& action) {
  const auto found = memories_.find(action.epoch);
  if (found == memories_.end()) return;  // refused already
  v1::ToWorker message;
  message.mutable_epoch_start()->set_epoch(action.epoch);
  message.mutable_epoch_start()->set_token(EpochToken(options_.epoch_secret, action.epoch));
  SendTo(action.rank, message.SerializeAsString(), found->second->Descriptors(), found->second);
}

void LinkServer::SendTable(const EpochAction& action) {
  size_t size = 0;
  for (const HostShape& host : options_.hosts) size += host.ranks;
  std::vector<std::string> by_rank(size);
  for (const v1::RankAddress& entry : tables_[action.epoch].addresses()) {
    if (entry.rank() < size) by_rank[entry.rank()] = entry.address();
  }
  v1::ToWorker message;
  message.mutable_table()->set_epoch(action.epoch);
  for (std::string& address : by_rank) message.mutable_table()->add_addresses(std::move(address));
  const auto arenas = arenas_.find(action.epoch);
  if (arenas == arenas_.end()) return SendTo(action.rank, message.SerializeAsString());
  const std::shared_ptr<ArenaBox>& box = arenas->second;
  for (const uint64_t bytes : box->Bytes()) message.mutable_table()->add_arena_bytes(bytes);
  SendTo(action.rank, message.SerializeAsString(), box->Descriptors(), box);
}

void LinkServer::SendTo(int rank, const std::string& message, std::vector<int> fds,
                        std::shared_ptr<const void> keep) {
  const auto found = peers_.find(ranks_[rank].peer);
  if (found == peers_.end()) return;
  LinkPeer* peer = found->second.get();
  peer->Send(message, std::move(fds), std::move(keep));
  peer->Flush();  // a broken link shows as its end of file
  WatchPeer(*peer);
}

// Waits for room to send what is left; where it is not the socket that is full, for a moment.
void LinkServer::WatchPeer(const LinkPeer& peer) {
  const int fd = peer.fd();
  const bool full = peer.has_backlog() && !peer.crowded();
  loop_.Change(fd, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
  if (!peer.crowded()) return;
  loop_.At(Clock::now() + kCrowdedRetry, [this, fd] {
    const auto found = peers_.find(fd);
    if (found == peers_.end() || !found->second->crowded()) return;
    if (!found->second->Flush()) return Close(fd);
    WatchPeer(*found->second);
  });
}

void LinkServer::TellAddresses(uint64_t epoch) {
  v1::Event event;
  event.mutable_host_addresses()->set_epoch(epoch);
  const std::vector<std::string>& addresses = book_.addresses(epoch);
  for (int rank = 0; rank < options_.local_size; ++rank) {
    v1::RankAddress& entry = *event.mutable_host_addresses()->add_addresses();
    entry.set_rank(options_.first_rank + rank);
    entry.set_address(addresses[rank]);
  }
  options_.on_event(std::move(event));
}

std::string LinkServer::ActivityOf(int rank) const {
  const auto found = memories_.find(book_.last_epoch(rank));
  return found == memories_.end() ? ranks_[rank].activity : found->second->Activity(rank);
}

}  // namespace hvd
