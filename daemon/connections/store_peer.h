// SPDX-License-Identifier: Apache-2.0
// One connection of the store's: its socket, the call that is under way on it, and what waits to be
// sent. Thin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.h"
#include "daemon/connections/frames.h"
#include "store/store_limits.h"
#include "store/store_words.h"

namespace hvd::daemon {

class StorePeer {
 public:
  // Takes the socket, which is non-blocking.
  StorePeer(int rank, Descriptor socket) : rank_(rank), socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  int rank() const { return rank_; }  // local

  // Reads what is there. False: the connection has ended.
  bool Read();
  void Take(std::string_view bytes) { cutter_.Take(bytes); }
  bool NextMessage(std::string* message) { return cutter_.Next(message); }
  bool broken() const { return cutter_.broken(); }
  // Whether the other end has hung up, read or not.
  bool given_up() const;

  void Send(std::string_view message) { out_ += Frame(message); }
  // Sends what fits. False: the connection is broken.
  bool Flush();
  bool has_backlog() const { return !out_.empty(); }

  // 0: none is under way.
  uint64_t call = 0;
  StoreVerb verb = StoreVerb::kNone;

 private:
  const int rank_;
  Descriptor socket_;
  FrameCutter cutter_{kMostStoreMessage};
  std::string out_;
  size_t sent_ = 0;  // of out_
};

}  // namespace hvd::daemon
