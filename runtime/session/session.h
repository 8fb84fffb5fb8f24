// This process's place in the job: claims its rank from the daemon, then joins epochs one after the
// other. Threads: one caller at a time (hvd_init and hvd_shutdown are serialised by the API).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hostfile/topology.h"
#include "runtime/session/arena.h"
#include "runtime/session/host_memory.h"
#include "runtime/session/link_socket.h"
#include "runtime/session/link_words.h"

namespace hvd {

struct EpochGrant {
  uint64_t epoch = 0;
  std::string token;  // 32 bytes: the secret of the epoch's data plane
  std::unique_ptr<HostMemory> memory;
};

// What a rank learns when all have met.
struct Meeting {
  std::vector<std::string> addresses;  // by global rank
  std::vector<ArenaFile> arenas;       // by local rank; the descriptors are the receiver's
};

class Session {
 public:
  // Connects and claims the rank.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const LinkName& link);

  int rank() const { return rank_; }
  const Topology& topology() const { return topology_; }
  const std::string& job() const { return job_; }

  // Waits until this epoch's memory exists, and maps its beginning: `memory_bytes` with the host
  // page; all local ranks must agree.
  absl::StatusOr<EpochGrant> Join(uint64_t after_epoch, size_t memory_bytes);
  // Gives this rank's data-plane address and its arena (which stays the caller's), takes
  // everyone's.
  absl::StatusOr<Meeting> Exchange(const EpochGrant& grant, const std::string& address,
                                   const ArenaFile& arena);
  // Waits until every rank of the job is connected.
  absl::Status Barrier(const EpochGrant& grant);
  absl::Status Leave(uint64_t epoch);
  // Others hear from the daemon why this rank does not come.
  absl::Status TellInitFailed(const std::string& why);
  // Has the timeline of all ranks written to `path` on hvdrun's host, or ended (empty). Waits until
  // it is so; the error is hvdrun's.
  absl::Status AskTimeline(const std::string& path);

 private:
  explicit Session(int fd) : socket_(fd) {}
  absl::StatusOr<ToWorkerMessage> Await(ToWorkerKind wanted, const HostPage* page,
                                        std::vector<int>* fds = nullptr);

  LinkSocket socket_;
  int rank_ = 0;
  Topology topology_;
  std::string job_;
};

}  // namespace hvd
