// SPDX-License-Identifier: Apache-2.0
// A message for the member in a slot, with its descriptors. Plain values.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace hvd::daemon {

// A message to a worker. `keep` holds what the descriptors belong to until they are sent.
struct SlotMessage {
  std::string bytes;
  std::vector<int> fds = {};
  std::shared_ptr<const void> keep = nullptr;
};

}  // namespace hvd::daemon
