// SPDX-License-Identifier: Apache-2.0
// Processes that another launcher has started, and that become the workers of their slots. Each
// waits at a socket of its own in the abstract namespace; the shim connects, hands over the door
// and what the process is to find, and watches it from then on by its pidfd. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "daemon/shim/shim_channel.h"
#include "daemon/shim/spawn_order.h"

namespace hvd::daemon {

class ClaimedWorkers {
 public:
  // `tell` takes kStarted, kSpawnFailed and kExited; `on_end` is called behind the last two.
  ClaimedWorkers(Loop* loop, std::function<void(const ShimReport&)> tell,
                 std::function<void()> on_end);

  void Claim(int slot, SpawnOrder order, Descriptor door);
  // False: the slot has none of these.
  bool Signal(const ShimRequest& request);
  // Workers that have not come are waited for no longer.
  void GiveUpAwaited();
  void KillAll();
  // The same, and tells nobody.
  void KillNow() const;
  bool empty() const { return workers_.empty(); }
  // Living ones that have come.
  int living() const;
  // Waits until those that KillNow has killed have ended, but not beyond `until`.
  void AwaitEnd(TimePoint until) const;

 private:
  struct Worker {
    SpawnOrder order;
    Descriptor door;
    Descriptor talk;   // connected; invalid: it has not come yet
    Descriptor pidfd;  // likewise
    int pid = -1;
    bool taken = false;  // it has said so
    Descriptor parent;   // its launcher's process, or one that this has started
    TimePoint patience;
    Clock::duration pause{};
    std::optional<int> word;          // the status that it has announced
    std::optional<ShimReport> ended;  // to be told in its turn
  };

  void Reach(int slot);
  void TryAgain(int slot);
  bool Connect(Worker* worker);
  std::string HandOver(Worker* worker);
  void OnWords(int slot);
  void OnProcessEnd(int slot);
  ShimReport DescribeEnd(int slot) const;
  void TellEnds(bool all);
  void WatchParent(int slot, int parent);
  void EndOrphan(int slot);
  void Fail(int slot, const std::string& why);
  void Drop(int slot);

  Loop* const loop_;
  const std::function<void(const ShimReport&)> tell_;
  const std::function<void()> on_end_;
  std::map<int, Worker> workers_;  // by slot
  // Slots of those that have closed all that they had open, in that order, and whose end is not
  // told yet.
  std::vector<int> going_;
};

}  // namespace hvd::daemon
