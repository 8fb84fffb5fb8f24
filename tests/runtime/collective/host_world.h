// SPDX-License-Identifier: Apache-2.0
// Ranks of one host as threads over one region.
#pragma once

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/collective/host/host_collectives.h"
#include "tests/runtime/collective/rank_threads.h"
#include "tests/runtime/collective/worlds.h"

namespace hvd::rt::test {

// A host's memory: the page, the region after it, and event fds where asked for. Fresh a time.
class HostMemory {
 public:
  HostMemory(int local_size, bool with_event_fds)
      : bytes_(HostPageBytes(local_size) + HostCollectives::HostRegionBytes(local_size)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    new (memory_) HostPage;
    page()->local_size = local_size;
    for (int i = 0; with_event_fds && i < local_size; ++i) {
      event_fds_.push_back(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    }
  }
  ~HostMemory() {
    for (const int fd : event_fds_) close(fd);
    munmap(memory_, bytes_);
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  HostPage* page() const { return static_cast<HostPage*>(memory_); }
  void* region() const { return static_cast<char*>(memory_) + HostPageBytes(page()->local_size); }
  const int* event_fds() const { return event_fds_.empty() ? nullptr : event_fds_.data(); }

 private:
  const size_t bytes_;
  void* const memory_;
  std::vector<int> event_fds_;
};

class HostWorld : public World {
 public:
  HostWorld(int size, std::string path, const HostThresholds& thresholds)
      : size_(size), path_(std::move(path)), thresholds_(thresholds) {}

  std::string name() const override { return "host of " + std::to_string(size_) + ", " + path_; }
  int size() const override { return size_; }
  std::string Run(const RankBody& body) override {
    memory_ = std::make_unique<HostMemory>(size_, false);
    return RunRanks(size_, [&](int rank) -> std::string {
      Waiter waiter(memory_->page(), rank, nullptr, WaitPolicy::For(size_, UsableCores()));
      auto host = HostCollectives::Create({&waiter, memory_->region(), rank, size_}, thresholds_);
      return host.ok() ? body(**host) : host.status().ToString();
    });
  }
  void Abort(const char* cause) override { AbortEpoch(memory_->page(), cause, nullptr); }

 private:
  const int size_;
  const std::string path_;
  const HostThresholds thresholds_;
  std::unique_ptr<HostMemory> memory_;
};

}  // namespace hvd::rt::test
