// SPDX-License-Identifier: Apache-2.0
// The transports of a few ranks as threads, connected to one another; whichever implementation.
#pragma once

#include <barrier>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/transport/loopback/loopback_transport.h"
#include "runtime/transport/tcp/tcp_transport.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/ucx/ucx_transport.h"

namespace hvd::rt::test {

enum class TransportKind { kLoopback, kTcp, kUcx };
inline constexpr TransportKind kTransportKinds[] = {TransportKind::kLoopback, TransportKind::kTcp,
                                                    TransportKind::kUcx};

inline std::string NameOf(TransportKind kind) {
  if (kind == TransportKind::kTcp) return "TCP";
  return kind == TransportKind::kLoopback ? "loopback" : "UCX";
}

class TransportWorld {
 public:
  TransportWorld(TransportKind kind, int size)
      : kind_(kind), size_(size), loopback_(size), addresses_(size), meeting_(size) {}

  // Makes and connects a rank's transport; all ranks call it, each from its thread.
  absl::StatusOr<std::unique_ptr<Transport>> Join(int rank) {
    absl::StatusOr<std::unique_ptr<Transport>> transport = Make(rank);
    absl::Status ready = transport.status();
    if (ready.ok()) {
      absl::StatusOr<std::string> address = (*transport)->Address();
      ready = address.status();
      if (ready.ok()) addresses_[rank] = *address;
    }
    meeting_.arrive_and_wait();
    if (ready.ok()) ready = (*transport)->Connect(addresses_);
    meeting_.arrive_and_wait();
    if (!ready.ok()) return ready;
    return transport;
  }
  // Waits for the other ranks before a transport is thrown away.
  void Leave() { meeting_.arrive_and_wait(); }

 private:
  absl::StatusOr<std::unique_ptr<Transport>> Make(int rank) {
    if (kind_ == TransportKind::kLoopback) return loopback_.TransportFor(rank);
    if (kind_ == TransportKind::kTcp) {
      return MakeTcpTransport(
          {.secret = std::string(32, 's'), .rank = rank, .size = size_, .net_devices = "lo"});
    }
    UcxOptions options;
    options.token = 0x1234567890abcdef;
    options.rank = rank;
    options.size = size_;
    options.net_devices = "lo";
    return MakeUcxTransport(options);
  }

  const TransportKind kind_;
  const int size_;
  LoopbackWorld loopback_;
  std::vector<std::string> addresses_;
  std::barrier<> meeting_;
};

}  // namespace hvd::rt::test
