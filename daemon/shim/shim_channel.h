// SPDX-License-Identifier: Apache-2.0
// The messages between hvdd and its shim: fixed records over a SOCK_SEQPACKET pair, descriptors
// beside them. Both ends are the same binary, so the records are plain structs.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/descriptor.h"

namespace hvd::daemon {

enum class ShimAsk : uint32_t {
  kSpawn,          // descriptors: order (memfd), stdin, stdout, stderr, door
  kSignalWorker,   // to the rank's own process; with `tree` also to what is left when it ends
  kTermLeftovers,  // CONT and TERM to descendants that belong to no living rank
  kKillAll,        // KILL to the whole containment; answered by kEmpty when nothing is left
  kCountAll,       // answered by kSurvivors
  kLease,          // the lease word was set, or set back: kill everything when it says so
};

struct ShimRequest {
  ShimAsk ask;
  int32_t slot = -1;  // of the worker
  int32_t signal = 0;
  uint32_t tree = 0;
};

enum class ShimTell : uint32_t {
  kReady,        // containment stands; descriptors: listening socket of the way back
  kFailed,       // containment does not work here: text says why; the shim is gone
  kStarted,      // the command runs; descriptors: its pidfd
  kSpawnFailed,  // `error` is errno, text names the step
  kExited,       // status as wait4 gives it
  kEmpty,        // no descendant is left
  kSurvivors,    // status: how many
};

struct ShimReport {
  ShimTell tell;
  int32_t slot = -1;
  int32_t pid = 0;  // as the shim sees it
  int32_t status = 0;
  int32_t error = 0;
  char text[400] = {};
};

// One end. Not thread-safe.
class ShimChannel {
 public:
  explicit ShimChannel(Descriptor socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }

  // From now on Ask blocks for so long at most.
  void BoundAsks(std::chrono::milliseconds patience);
  // Blocks while the other end's queue is full. False: the other end is gone, or (EAGAIN) has taken
  // nothing for the whole bound.
  bool Ask(const ShimRequest& request, const std::vector<int>& fds = {});
  // Never blocks: a paused hvdd must not pause the shim. A report that does not fit waits for
  // Flush.
  void Tell(const ShimReport& report, Descriptor fd = Descriptor());
  void Flush();
  bool has_backlog() const { return !backlog_.empty(); }

  enum class Got { kRecord, kNothing, kEnd };
  Got Receive(ShimRequest* request, std::vector<Descriptor>* fds);
  Got Receive(ShimReport* report, std::vector<Descriptor>* fds);

 private:
  struct Waiting {
    ShimReport report;
    Descriptor fd;
  };

  Descriptor socket_;
  std::deque<Waiting> backlog_;
};

}  // namespace hvd::daemon
