// SPDX-License-Identifier: Apache-2.0
// Where peers come in: listens at this rank's addresses, and lets in who proves that it belongs to
// the epoch. Others get the same challenge whoever they are, and are dropped without a word: at the
// first wrong proof, when they take too long, or when too many are waiting, strangers' addresses
// first. Guarded by the transport's mutex.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/transport/net_devices.h"
#include "runtime/transport/tcp/address_list.h"
#include "runtime/transport/tcp/handshake.h"
#include "runtime/transport/tcp/poller.h"

namespace hvd::rt {

struct DoorwayLimits {
  size_t guests = 64;                              // connections that have proven nothing
  Clock::duration time{std::chrono::seconds(10)};  // that one may take
};

class DoorwayOwner {
 public:
  virtual ~DoorwayOwner() = default;
  // Whether there is room for this connection. It has proven that it may ask.
  virtual bool Expects(const LaneName& name) = 0;
  virtual void OnGuest(const LaneName& name, Socket socket, const std::string& where) = 0;
};

class Doorway {
 public:
  Doorway(std::string secret, const DoorwayLimits& limits, Poller* poller, DoorwayOwner* owner);
  ~Doorway();

  // At a free port of each address; those that cannot be used are left out, unless all are.
  absl::Status Listen(const std::vector<NetAddress>& places, int backlog);
  const std::vector<PeerAddress>& addresses() const { return addresses_; }
  // Addresses that peers are likely to come from.
  void Know(const std::string& host) { known_.insert(host); }
  // Nobody else is expected.
  void Close();

  void OnTime(Clock::time_point now);
  Clock::time_point due() const;
  size_t guests() const { return guests_.size(); }

 private:
  class Door;
  class Guest;

  void Accept(const Socket& door);
  void Welcome(Socket socket, const SocketAddress& from);
  // False: nobody waits.
  bool DropOne();
  void Drop(Guest* guest);
  void OnAnswer(Guest* guest);

  const std::string secret_;
  const DoorwayLimits limits_;
  Poller* const poller_;
  DoorwayOwner* const owner_;
  std::set<std::string> known_;
  std::vector<PeerAddress> addresses_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<std::unique_ptr<Guest>> guests_;               // oldest first
  Clock::time_point open_again_ = Clock::time_point::max();  // no descriptor was left
};

}  // namespace hvd::rt
