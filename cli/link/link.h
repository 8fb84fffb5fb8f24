// SPDX-License-Identifier: Apache-2.0
// The driver's end of link A: gRPC over the sockets that the spawner made. One thread of its own
// ("hvdrun-grpc") sends the beats, hears their echoes and turns all other completions into a queue
// of arrivals; everything else is the driver's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/descriptor.h"
#include "cli/link/clock_offset.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

// A message that came from a host, or the end of its link.
struct Arrival {
  enum Kind { kBeat, kEvent, kOutput, kStore, kEnded } kind;
  int host = 0;
  BeatRoundTrip trip = {};  // kBeat: one of ours that came back
  v1::Event event = {};
  v1::OutputChunk output = {};
  v1::StoreChunk store = {};
  std::string ended = {};  // gRPC's words for why the link is no more
};

// A host that has said hello.
struct HostSocket {
  int host = 0;
  Descriptor fd;        // stands right behind the hello line, and is non-blocking
  bool is_far = false;  // reached through a remote shell
};

class DaemonLinks {
 public:
  explicit DaemonLinks(double lease_s);
  ~DaemonLinks();  // not before every link has ended; the driver leaves by _exit instead

  int event_fd() const;  // readable when Take() has something that cannot wait
  // Whatever has arrived, in order for each stream.
  std::vector<Arrival> Take();
  // Whether event_fd() tells of beats, too. They wait for the next Take() else: a driver that has
  // nothing to do is not woken four times a second.
  void TellOfBeats(bool wanted);

  void AddHost();                // the next; hosts are numbered in the order of their coming
  void Open(HostSocket socket);  // once a host
  // These are dropped when the host's link is not open or has ended.
  void Send(int host, const v1::Command& command);
  // `bytes` is the total received so far.
  void AckOutput(int host, uint64_t bytes);
  void SendStore(int host, const v1::StoreChunk& chunk);

  // ---- life: times are seconds of the monotonic clock ----

  // The driver's loop turns. Beats cease half a lease after the last call: a driver that is stuck
  // must not look alive.
  void Turned(double now);
  // When the host is given up unless a beat comes back; infinity without a link.
  double deadline(int host) const;
  double proven(int host) const;  // send time of the newest beat that came back
  // No more beats for this host: it is given up, and must end with its lease.
  void GiveUp(int host);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvd::cli
