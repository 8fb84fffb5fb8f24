// SPDX-License-Identifier: Apache-2.0
// Takes the timelines of this host's ranks out of the epochs' memories, while they record. It costs
// the ranks nothing. Belongs to the links thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/loop.h"
#include "daemon/members/host_memories.h"

namespace hvd::daemon {

// The timelines' way to the driver; all on the links thread.
struct TraceOutlet {
  std::function<size_t()> room;  // how many bytes may be given now
  std::function<void(const std::string& frames)> on_trace;
  std::function<void()> on_off;  // recording has ended; what was recorded has been given
  std::function<void()> on_end;  // nothing will ever follow
};

class TraceWatch {
 public:
  TraceWatch(Loop* loop, const HostMemories* memories, TraceOutlet outlet);

  void Switch(bool on);
  // A new memory's ranks record as all others do.
  void Follow(EpochMemory* memory) const { memory->SetTracing(on_); }
  // All there is, whatever the room: a memory or the last rank goes. A ring's worth a rank at most.
  void TakeAll();
  void End();

 private:
  void Look();
  bool Take(size_t room);

  Loop* const loop_;
  const HostMemories* const memories_;
  const TraceOutlet outlet_;
  bool on_ = false;
  bool looking_ = false;  // a timer for Look is set
};

}  // namespace hvd::daemon
