// The driver's end of link A: gRPC over the sockets that the spawner made. One thread of its own
// ("hvdrun-grpc") turns completions into a queue of arrivals; everything else is the driver's
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cli/descriptor.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd {

// What came from a host.
struct Arrival {
  enum Kind { kBeat, kEvent, kOutput, kEnded } kind;
  int host = 0;
  v1::HeartBeat beat = {};
  v1::Event event = {};
  v1::OutputChunk output = {};
  std::string ended = {};  // gRPC's words for why the link is no more
  int64_t at_ns = 0;       // kBeat: when it came, by our monotonic clock
};

class DaemonLinks {
 public:
  explicit DaemonLinks(int hosts);
  ~DaemonLinks();  // not before every link has ended; the driver leaves by _exit instead

  int event_fd() const;  // readable when Take() has something
  // Whatever has arrived, in order for each stream.
  std::vector<Arrival> Take();

  // The socket stands right behind the hello line, and is non-blocking. May be called once a host.
  void Open(int host, Descriptor socket);
  // These three are dropped when the host's link is not open or has ended.
  void Send(int host, const v1::Command& command);
  void SendBeat(int host, const v1::HeartBeat& beat);
  // `bytes` is the total received so far.
  void AckOutput(int host, uint64_t bytes);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvd
