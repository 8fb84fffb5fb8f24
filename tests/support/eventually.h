// SPDX-License-Identifier: Apache-2.0
// Waits for what another process or thread brings about and tells nobody.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>

#include "tests/support/patience.h"

namespace hvd {

// Polls until `holds` or Patient(`seconds`) are over.
inline bool Eventually(double seconds, const std::function<bool()>& holds) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(Patient(seconds));
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    poll(nullptr, 0, 2);
  }
  return true;
}

}  // namespace hvd
