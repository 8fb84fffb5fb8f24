// SPDX-License-Identifier: Apache-2.0
// The requests of one call, and the engines that have them.
#pragma once

#include <memory>
#include <vector>

#include "runtime/engine/engine.h"

namespace hvd::rt {

struct SetRequests {
  std::vector<std::unique_ptr<Request>>
      requests;                  // one; one a dtype of a group, one a set of a join
  std::weak_ptr<Engine> engine;  // gone: every request is done
  std::vector<std::weak_ptr<Engine>> set_engines;  // of a join: each request's own, instead

  const std::weak_ptr<Engine>& EngineOf(size_t request) const {
    return set_engines.empty() ? engine : set_engines[request];
  }
  // Whether a wait would return at once.
  bool is_done() const {
    for (size_t i = 0; i < requests.size(); ++i) {
      const bool done = requests[i]->done.load(std::memory_order_acquire);
      if (!done && !EngineOf(i).expired()) return false;
    }
    return true;
  }
};

}  // namespace hvd::rt
