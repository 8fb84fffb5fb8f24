// SPDX-License-Identifier: Apache-2.0
// The data plane: what a rank gives to a collective is seen by its own host's ranks at once, and by
// another host's when the link between the two has brought it. Links are first-in-first-out each.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/simulator/elastic/scheduler.h"

namespace hvd::elastic_simulator {

using Words = std::vector<int64_t>;

struct CollectiveKey {
  uint64_t epoch = 0;
  int set = 0;    // 0: all ranks
  int index = 0;  // counted in the set
  auto operator<=>(const CollectiveKey&) const = default;
};

// The part that one rank gives.
struct Given {
  std::string name;  // of the collective, which must be the same on all ranks
  Words words;
};
using Gifts = std::map<int, Given>;  // by rank

class Wire : public Actor {
 public:
  // `open`: whether anything comes from one host to another now.
  Wire(Scheduler* scheduler, std::function<bool(int from, int to)> open);

  struct Gift {
    CollectiveKey key;
    int host = 0;
    int rank = 0;
    Given given;
  };
  void Give(const Gift& gift, const std::vector<int>& hosts);
  // Returns what has come to the host.
  const Gifts& At(int host, CollectiveKey key) {
    if (any_epoch_) key.epoch = 0;
    return boards_[{host, key}];
  }
  // With `any`, a host takes what was given under a place in any epoch (for a mutant).
  void TakeAnyEpoch(bool any) { any_epoch_ = any; }
  void Forget(uint64_t epochs_before);

  bool Ready() const override;
  void Step() override;

 private:
  Scheduler* const scheduler_;
  const std::function<bool(int, int)> open_;
  std::map<std::pair<int, int>, std::deque<Gift>> links_;
  std::map<std::pair<int, CollectiveKey>, Gifts> boards_;
  bool any_epoch_ = false;
};

}  // namespace hvd::elastic_simulator
