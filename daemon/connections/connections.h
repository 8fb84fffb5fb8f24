// SPDX-License-Identifier: Apache-2.0
// The connections of this host's links: who has come, which connection speaks for which slot, and
// who is turned away. It knows nothing of epochs; what is said goes to its handlers. Belongs to one
// loop, whose thread alone calls it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/loop.h"
#include "daemon/connections/link_peer.h"
#include "daemon/connections/slot_message.h"

namespace hvd::daemon {

// Behind the name of a process, or of the rank that it speaks for.
inline constexpr const char* kSentNoMessage = "sent hvdd what is no message of libhvd's";

struct ConnectionHandlers {
  // May close the connection, refuse it, or give it away.
  std::function<void(LinkPeer* peer, const std::string& message)> on_message;
  // A connection that spoke for a slot is gone. `how` a living process has lost it: words behind
  // the rank's name.
  std::function<void(const LinkPeer& peer, const char* how)> on_lost;
  // The first process of a job that is none of its ranks: words for a person.
  std::function<void(std::string text)> on_stranger;
};

class Connections {
 public:
  Connections(Loop* loop, int slots, ConnectionHandlers handlers);

  // The way back for those who have no door; may be invalid.
  void Listen(Descriptor listener);
  // Nobody speaks for `slot` any more, and its door is shut: another worker is to come there.
  void Reset(int slot);
  // Over which the worker of `slot` sends one end of a socket pair of its own.
  void AddDoor(int slot, Descriptor door);

  // The connection that speaks for `slot`; null: none.
  LinkPeer* SpeakerOf(int slot) const;
  // `peer` speaks for `slot` from now on.
  void SpeaksFor(int slot, LinkPeer* peer);
  // Takes what the speaker of `slot` has said and hvdd has not read: the word of its end comes
  // another way, and may be sooner.
  void HearOut(int slot);
  // Nothing, where nobody speaks for `slot`.
  void Send(int slot, SlotMessage message);

  // The last words to `peer`, which is closed.
  void SendLast(LinkPeer* peer, std::string_view bytes);
  void Close(int fd, const char* how = "closed its link to hvdd");
  // The same for one whose words are no libhvd's, or do not come.
  void TurnAway(const LinkPeer& peer, const char* how);
  void TellOfStranger(const LinkPeer& peer, const char* how);
  struct Released {
    Descriptor socket;
    std::string rest;  // what has come behind the messages
  };
  // For whoever goes on with this connection.
  Released Release(LinkPeer* peer);

 private:
  void OnDoor(int slot);
  void OnListener();
  void Adopt(Descriptor socket);
  void AwaitClaim(int fd);
  void LookForClaims();
  void NoLongerUnclaimed(int fd);
  void OnPeer(int fd, uint32_t events);
  void WatchPeer(const LinkPeer& peer);

  Loop* const loop_;
  const ConnectionHandlers handlers_;
  Descriptor listener_;
  std::vector<Descriptor> doors_;                   // by slot
  std::vector<int> speakers_;                       // by slot: the connection's descriptor, or -1
  std::map<int, std::unique_ptr<LinkPeer>> peers_;  // by descriptor
  // The peers that speak for nobody yet, the oldest first, and until when they may be silent.
  std::deque<std::pair<int, TimePoint>> unclaimed_;
  Loop::TimerId claim_timer_;
  bool told_of_stranger_ = false;
};

}  // namespace hvd::daemon
