// The part of LinkServer that looks into the host memories: timelines and counters. It costs the
// ranks nothing.
#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/link_b/link_server.h"
#include "hvd/v1/link_b.pb.h"

namespace hvd {
namespace {

// Often enough that a busy rank's ring (131072 spans) does not overflow; but each time wakes six
// threads on the ranks' cores.
constexpr auto kTracePeriod = std::chrono::milliseconds(200);
// When there was no room for all.
constexpr auto kTraceCatchUp = std::chrono::milliseconds(20);

}  // namespace

RankTotals LinkServer::CountsOf(int rank) const {
  RankTotals totals = ranks_[rank].counts;
  for (const auto& [epoch, memory] : memories_) totals.Add(memory->Counts(rank));
  return totals;
}

// The epoch's memory goes; what it said stays.
void LinkServer::Forget(uint64_t epoch) {
  const auto found = memories_.find(epoch);
  if (found == memories_.end()) return;
  TakeTraces(true);
  for (int rank = 0; rank < options_.local_size; ++rank) {
    ranks_[rank].counts.Add(found->second->Counts(rank));
  }
  memories_.erase(found);
  arenas_.erase(epoch);
}

void LinkServer::SetTimeline(v1::SetTimeline set) {
  loop_.Post([this, set = std::move(set)] {
    if (set.error().empty()) SwitchTracing(set.on());
    const int rank = static_cast<int>(set.rank()) - options_.first_rank;
    if (!set.answer() || rank < 0 || rank >= options_.local_size) return;
    v1::ToWorker message;
    message.mutable_timeline_answer()->set_error(set.error());
    SendTo(rank, message.SerializeAsString());
  });
}

void LinkServer::SwitchTracing(bool on) {
  if (std::exchange(tracing_, on) == on) return;
  for (const auto& [epoch, memory] : memories_) memory->SetTracing(on);
  if (on && !std::exchange(looking_, true)) LookAtTraces();
  if (on) return;
  TakeTraces(true);
  options_.on_trace_off();
}

// Once more after the end: spans that had begun before it.
void LinkServer::LookAtTraces() {
  looking_ = tracing_;
  const bool all = TakeTraces(false);
  if (!looking_) return;
  loop_.At(Clock::now() + (all ? kTracePeriod : kTraceCatchUp), [this] { LookAtTraces(); });
}

// What has no room now stays in the rings, which count what they cannot take. At the end of a
// memory or of the ranks, all of it goes: a ring's worth a rank at most. False: some may be left.
bool LinkServer::TakeTraces(bool whatever_the_room) {
  const size_t room =
      whatever_the_room ? std::numeric_limits<size_t>::max() : options_.trace_room();
  std::string frames;
  for (const auto& [epoch, memory] : memories_) {
    for (int rank = 0; rank < options_.local_size; ++rank) {
      memory->TakeTrace(rank, room - std::min(room, frames.size()), &frames);
    }
  }
  if (!frames.empty()) options_.on_trace(frames);
  return frames.size() + sizeof(TraceSlot) < room;
}

void LinkServer::NoteRankEnded(int rank) {
  ranks_[rank].ended = true;
  const bool all = std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.ended; });
  if (!all) return;
  TakeTraces(true);
  options_.on_trace_end();
}

}  // namespace hvd
