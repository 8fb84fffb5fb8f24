// SPDX-License-Identifier: Apache-2.0
// Carries the calls of this host's ranks to the job's key-value store, which the driver holds, and
// its answers back. It reads neither. On a thread of its own ("hvdd-store"), so that a large value
// holds back nothing of link B's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/descriptor.h"
#include "base/loop.h"
#include "daemon/connections/store_peer.h"
#include "hvd/v1/link_a.pb.h"
#include "store/parcels.h"

namespace hvd::daemon {

class StoreRelay {
 public:
  // To the driver; called on this thread, never blocks.
  using Send = std::function<void(const v1::StoreChunk&)>;

  StoreRelay();
  ~StoreRelay();

  // All from any thread. Chunks that are to be sent before Connect wait for it.
  void Connect(Send send);
  // A connection that has shown the token of `rank` (local); `rest` came behind that.
  void Adopt(int rank, Descriptor socket, std::string rest);
  // From the driver.
  void Receive(v1::StoreChunk chunk);
  // The epoch of this host's ranks is broken: ranks that wait for a key are told why.
  void EndWaits(std::string cause);
  // The job ends: every call is answered with why, now and from now on.
  void Stop(std::string cause);

 private:
  void Take(int rank, Descriptor socket, const std::string& rest);
  void CloseGivenUp(int rank);
  void OnPeer(int fd, uint32_t events);
  void OnRequest(StorePeer* peer, std::string message);
  void Answer(StorePeer* peer, const std::string& message);
  void Abort(StorePeer* peer, const std::string& cause);
  void AbortCalls(const std::string& cause, bool waits_only);
  void Close(int fd);
  void Watch(const StorePeer& peer);
  void TellGone(uint64_t call);
  void Hear(const v1::StoreChunk& chunk);
  void Pump();

  Loop loop_;
  Send send_;
  std::map<int, std::unique_ptr<StorePeer>> peers_;  // by descriptor
  std::map<uint64_t, int> calls_;                    // under way: the descriptor of each
  std::map<int, int> connections_;                   // by rank: how many
  uint64_t last_call_ = 0;
  ParcelSender sender_;
  ParcelReceiver receiver_;
  uint64_t told_taken_ = 0;
  std::string stopped_;  // why; empty: not yet
  std::thread thread_;
};

}  // namespace hvd::daemon
