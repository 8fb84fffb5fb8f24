// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch/trace_watch.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hvd::daemon {
namespace {

// Often enough that a busy rank's ring (131072 spans) does not overflow; but each time wakes six
// threads on the ranks' cores.
constexpr auto kTracePeriod = std::chrono::milliseconds(200);
// When there was no room for all.
constexpr auto kTraceCatchUp = std::chrono::milliseconds(20);

}  // namespace

TraceWatch::TraceWatch(Loop* loop, const HostMemories* memories, TraceOutlet outlet)
    : loop_(loop), memories_(memories), outlet_(std::move(outlet)) {}

void TraceWatch::Switch(bool on) {
  if (std::exchange(on_, on) == on) return;
  for (const auto& [epoch, memory] : memories_->by_epoch()) memory->SetTracing(on);
  if (on && !std::exchange(looking_, true)) Look();
  if (on) return;
  TakeAll();
  outlet_.on_off();
}

// Once more after the end: spans that had begun before it.
void TraceWatch::Look() {
  looking_ = on_;
  const bool all = Take(outlet_.room());
  if (!looking_) return;
  loop_->At(Clock::now() + (all ? kTracePeriod : kTraceCatchUp), [this] { Look(); });
}

void TraceWatch::TakeAll() { Take(std::numeric_limits<size_t>::max()); }

// Traces that have no room now stay in the rings, which count what they cannot take. False: some
// may be left.
bool TraceWatch::Take(size_t room) {
  std::string frames;
  for (const auto& [epoch, memory] : memories_->by_epoch()) {
    for (int rank = 0; rank < memory->local_size(); ++rank) {
      memory->TakeTrace(rank, room - std::min(room, frames.size()), &frames);
    }
  }
  if (!frames.empty()) outlet_.on_trace(frames);
  return frames.size() + sizeof(TraceSlot) < room;
}

void TraceWatch::End() {
  TakeAll();
  outlet_.on_end();
}

}  // namespace hvd::daemon
