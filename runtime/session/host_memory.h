// SPDX-License-Identifier: Apache-2.0
// The host's shared memory of one epoch, as this process has mapped it; and the bells of a job of
// several hosts. It is a sparse file: the host page and what the ranks need at first lie at its
// beginning, what they take later lies behind.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/page/host_page.h"
#include "runtime/session/shared_space.h"

namespace hvd::rt {

// Threads: any, but for its end.
class HostMemory : public SharedSpace {
 public:
  // Takes the descriptors: [0] the memory, then one event fd a local rank or none. `bytes` are
  // mapped, from the beginning.
  static absl::StatusOr<std::unique_ptr<HostMemory>> Map(std::vector<int> descriptors,
                                                         size_t bytes);
  // For a job of one rank without a launcher: a file of its own.
  static absl::StatusOr<std::unique_ptr<HostMemory>> Alone(size_t bytes);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  HostPage* page() const { return reinterpret_cast<HostPage*>(first_.get()); }
  std::byte* after_page() const { return first_.get() + HostPageBytes(page()->local_size); }
  // Null in a job of one host.
  const int* event_fds() const { return event_fds_.empty() ? nullptr : event_fds_.data(); }

  absl::StatusOr<uint64_t> Take(size_t bytes) override;
  absl::StatusOr<std::shared_ptr<std::byte>> Map(uint64_t place, size_t bytes) override;
  void Give(uint64_t place, size_t bytes) override;
  // The piece of a process set's region, the same for all its ranks here: the first one takes it.
  absl::StatusOr<uint64_t> PlaceOfRegion(int region, size_t bytes);
  // No rank here uses the region any more.
  void GiveRegion(int region, size_t bytes);

 private:
  HostMemory(int fd, std::vector<int> event_fds) : fd_(fd), event_fds_(std::move(event_fds)) {}
  absl::Status MapFirst(size_t bytes);

  const int fd_;
  const std::vector<int> event_fds_;
  std::shared_ptr<std::byte> first_;
};

}  // namespace hvd::rt
