// SPDX-License-Identifier: Apache-2.0
// The driver's side of the job's key-value store: what the hosts' ranks ask goes to the StoreBook,
// its answers go back, both on credit. One thread; no sockets, no clock (`now` is seconds of the
// monotonic clock).
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <vector>

#include "hvd/v1/link_a.pb.h"
#include "store/parcels.h"
#include "store/store_book.h"

namespace hvd::cli {

class DriverStore {
 public:
  using Send = std::function<void(int host, const v1::StoreChunk& chunk)>;

  explicit DriverStore(Send send) : send_(std::move(send)) {}

  void AddHost() { ports_.emplace_back(); }  // the next
  void Take(int host, const v1::StoreChunk& chunk, double now);
  // The host is gone, and who waited there with it.
  void HostEnded(int host) { book_.ForgetHost(host); }
  void Tick(double now);
  double deadline() const { return book_.deadline(); }

 private:
  struct Port {
    ParcelReceiver receiver;
    ParcelSender sender;
    uint64_t told_taken = 0;
  };

  void Ask(StoreCaller from, std::string_view message, double now);
  void Give(const std::vector<StoreBook::Reply>& replies);
  void PumpTouched(double now);
  void Pump(int host, double now);

  const Send send_;
  StoreBook book_;
  std::deque<Port> ports_;  // by host
  std::set<int> touched_;   // hosts that may have something to be sent
};

}  // namespace hvd::cli
