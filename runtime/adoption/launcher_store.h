// SPDX-License-Identifier: Apache-2.0
// Where the processes that another launcher has started tell one another a few words: the
// launcher's own key-value store, as far as hvd needs it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hvd::rt {

// Threads: one at a time. A destroyed store has taken its leave of the launcher, if the launcher
// asks that of its processes.
class LauncherStore {
 public:
  virtual ~LauncherStore() = default;

  // Gives `mine` and returns what every process gave, by rank. All processes call it, each once.
  // `mine` has at most 400 bytes of any values.
  // DeadlineExceeded: not all have come in `patience`; other errors name the library or the
  // variable that is at fault.
  virtual absl::StatusOr<std::vector<std::string>> Exchange(const std::string& mine,
                                                            std::chrono::milliseconds patience) = 0;

  // This process is about to end as one that could not join: the launcher is to end the others,
  // which wait for hvd. Nothing where it does so by itself, as it hears of no leave.
  virtual void Abandon() {}
};

}  // namespace hvd::rt
