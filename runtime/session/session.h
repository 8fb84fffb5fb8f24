// SPDX-License-Identifier: Apache-2.0
// This process as a member of the job: claims its membership from the daemon, then joins epochs one
// after the other; which rank it is, each epoch says anew. Threads: one caller at a time (hvd_init
// and hvd_shutdown are serialised by the API).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "hostfile/topology.h"
#include "runtime/session/arena.h"
#include "runtime/session/host_memory.h"
#include "runtime/session/link_socket.h"
#include "runtime/session/link_words.h"

namespace hvd::rt {

struct EpochGrant {
  uint64_t epoch = 0;
  std::string token;  // 32 bytes: the secret of the epoch's data plane
  int rank = 0;       // of this process, in this epoch
  Topology topology;  // of the epoch
  std::unique_ptr<HostMemory> memory;
  size_t memory_bytes = 0;              // of it, that all ranks of the host map at first
  StateWords state;                     // of an elastic job
  std::vector<Descriptor> state_files;  // likewise: two of the host, two of this member's share
};

// How much of the host memory a host's ranks take at first. All of them must come to the same.
using MemoryNeed = std::function<size_t(const Topology& topology, int host)>;

// The addresses and arenas that a rank learns when all have met.
struct Meeting {
  std::vector<std::string> addresses;  // by global rank
  std::vector<ArenaFile> arenas;       // by local rank; the descriptors are the receiver's
};

class Session {
 public:
  // Connects and claims the membership.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const LinkName& link);

  uint64_t member() const { return member_; }
  const std::string& job() const { return job_; }
  bool is_elastic() const { return is_elastic_; }
  int share() const { return share_; }  // of the host: the same for the member's life

  // Waits until the next epoch that this member is in has its memory, and maps the beginning of it.
  absl::StatusOr<EpochGrant> Join(const MemoryNeed& need);
  // Takes the join back: the others go on waiting for this member, which may join again. Only
  // before Exchange.
  absl::Status Withdraw(const EpochGrant& grant);
  // Gives this rank's data-plane address and its arena (which stays the caller's), takes
  // everyone's.
  absl::StatusOr<Meeting> Exchange(const EpochGrant& grant, const std::string& address,
                                   const ArenaFile& arena);
  // Waits until every rank of the job is connected.
  absl::Status Barrier(const EpochGrant& grant);
  absl::Status Leave(uint64_t epoch);
  // Elastic: leaves the epoch that was begun last and that this rank has not come to be in.
  // REQUIRES: nothing of it is mapped any more.
  absl::Status LeaveUnbegun();
  // Something has gone wrong on the way into the epoch that may be another's doing: waits until
  // others say that it is over, which is Aborted. DeadlineExceeded: `until` comes first.
  absl::Status AwaitEnd(const EpochGrant& grant, std::chrono::steady_clock::time_point until);
  // The last epoch that was asked for was refused, or others have ended it before it began: the
  // link is as good as before, and the next epoch may be asked for.
  bool refused() const { return refused_; }
  // Elastic: the epoch that was asked for is over before it began, and another may follow.
  bool may_follow() const { return is_elastic_ && may_follow_; }
  // Others hear from the daemon why this rank does not come.
  absl::Status TellInitFailed(const std::string& why);
  // Has the timeline of all ranks written to `path` on hvdrun's host, or ended (empty). Waits until
  // it is so; the error is hvdrun's.
  absl::Status AskTimeline(const std::string& path);
  // This process needs so long between TERM and its end. Waits for nothing.
  absl::Status AskGrace(uint64_t milliseconds);

 private:
  explicit Session(int fd) : socket_(fd) {}
  absl::StatusOr<ToWorkerMessage> Await(ToWorkerKind wanted, const HostPage* page,
                                        std::vector<int>* fds = nullptr);
  absl::StatusOr<ToWorkerMessage> AwaitUnless(absl::FunctionRef<absl::Status()> broken,
                                              ToWorkerKind wanted, std::vector<int>* fds);
  absl::Status TakeRefusal(const ToWorkerMessage& message);
  absl::StatusOr<EpochGrant> TakeStart(const MemoryNeed& need);
  absl::StatusOr<ToWorkerMessage> AwaitIn(const EpochGrant& grant, ToWorkerKind wanted,
                                          std::vector<int>* fds = nullptr);
  bool Stale(const ToWorkerMessage& message) const;

  LinkSocket socket_;
  uint64_t member_ = 0;
  std::string job_;
  uint64_t over_ = 0;  // the newest epoch that is over for this process; words about it are old
  bool refused_ = false;
  bool may_follow_ = false;
  bool is_elastic_ = false;
  int share_ = 0;
  uint64_t begun_ = 0;  // the epoch that hvdd has begun for this process last
};

}  // namespace hvd::rt
