// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/lease_word.h"

#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <new>

namespace hvd::daemon {

LeaseWord::LeaseWord() {
  void* const memory =
      mmap(nullptr, sizeof(*word_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  word_ = new (memory) std::atomic<int64_t>(TimePoint::max().time_since_epoch().count());
}

LeaseWord::~LeaseWord() { munmap(word_, sizeof(*word_)); }

void LeaseWord::Set(TimePoint until) {
  word_->store(std::chrono::nanoseconds(until.time_since_epoch()).count());
}

TimePoint LeaseWord::Get() const { return TimePoint(std::chrono::nanoseconds(word_->load())); }

}  // namespace hvd::daemon
