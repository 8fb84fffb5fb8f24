// SPDX-License-Identifier: Apache-2.0
// The engine's pen for the timeline: spans of time into this rank's ring, which hvdd reads. One a
// process set, used by whoever executes that set's requests.
#pragma once

#include <time.h>

#include <string>
#include <string_view>
#include <vector>

#include "proto/page/host_page.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {

// The tensor (or the batch) that a span belongs to.
struct TracedTensor {
  uint32_t number = 0;  // of the name, in its set
  std::string_view name;
  uint64_t bytes = 0;
};

class Timeline {
 public:
  explicit Timeline(const WatchPlace& place)
      : tracing_(&place.page->tracing),
        ring_(&WatchOf(place.page, place.local_rank).trace),
        region_(static_cast<uint8_t>(place.region)),
        set_(place.set) {}

  // One relaxed load; when false, take no time stamps.
  bool on() const { return tracing_->load(std::memory_order_relaxed) != 0; }
  // CLOCK_MONOTONIC in ns.
  static int64_t Now() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
  }
  // Now() while the timeline is on, else 0: what Record and Request::submitted_ns understand.
  int64_t Stamp() const { return on() ? Now() : 0; }

  // A span; nothing when begin_ns is 0, since the timeline was off then. Spans of one tensor nest:
  // record the inner ones first.
  void Record(TraceActivity activity, const TracedTensor& tensor, int64_t begin_ns,
              int64_t end_ns) {
    if (begin_ns != 0) Put(activity, tensor, begin_ns, end_ns);
  }
  // From `begin_ns` to now.
  void Record(TraceActivity activity, const TracedTensor& tensor, int64_t begin_ns) {
    if (begin_ns != 0) Put(activity, tensor, begin_ns, Now());
  }

  static TraceActivity Operation(RequestKind kind) { return static_cast<TraceActivity>(kind); }
  static TraceActivity Negotiation(RequestKind kind) {
    return static_cast<TraceActivity>(static_cast<int>(TraceActivity::kNegotiate) +
                                      static_cast<int>(kind));
  }

 private:
  void Put(TraceActivity activity, const TracedTensor& tensor, int64_t begin_ns, int64_t end_ns);

  const std::atomic<uint32_t>* const tracing_;
  TraceRing* const ring_;
  const uint8_t region_;
  const int32_t set_;
  std::vector<std::string> told_;  // by number: the names that hvdd knows
};

}  // namespace hvd::rt
