// This process's place in the job: claims its rank from the daemon, then joins epochs one after the
// other. Threads: one caller at a time (hvd_init and hvd_shutdown are serialised by the API).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hostfile/topology.h"
#include "proto/host_page.h"
#include "runtime/session/arena.h"
#include "runtime/session/link_socket.h"
#include "runtime/session/link_words.h"

namespace hvd {

// The host's shared memory of one epoch, mapped; and the bells of a job of several hosts.
class HostMemory {
 public:
  // Takes the descriptors: [0] the memory, then one event fd a local rank or none.
  static absl::StatusOr<std::unique_ptr<HostMemory>> Map(std::vector<int> descriptors,
                                                         size_t bytes);
  // For a job of one rank without a launcher: private memory with a page of its own.
  static absl::StatusOr<std::unique_ptr<HostMemory>> Alone(size_t bytes);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  HostPage* page() const { return static_cast<HostPage*>(address_); }
  std::byte* after_page() const { return static_cast<std::byte*>(address_) + kHostPageBytes; }
  // Null in a job of one host.
  const int* event_fds() const { return event_fds_.empty() ? nullptr : event_fds_.data(); }

 private:
  HostMemory(void* address, size_t bytes, std::vector<int> event_fds)
      : address_(address), bytes_(bytes), event_fds_(std::move(event_fds)) {}
  void* const address_;
  const size_t bytes_;
  const std::vector<int> event_fds_;
};

struct EpochGrant {
  uint64_t epoch = 0;
  std::string token;  // 8 bytes
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

  // Waits until this epoch's memory exists. `memory_bytes` includes the host page; all local ranks
  // must agree.
  absl::StatusOr<EpochGrant> Join(uint64_t after_epoch, size_t memory_bytes);
  // Gives this rank's data-plane address and its arena (which stays the caller's), takes
  // everyone's.
  absl::StatusOr<Meeting> Exchange(const EpochGrant& grant, const std::string& address,
                                   const ArenaFile& arena);
  // Waits until every rank of the job is connected.
  absl::Status Barrier(const EpochGrant& grant);
  absl::Status Leave(uint64_t epoch);
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
