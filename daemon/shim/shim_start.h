// SPDX-License-Identifier: Apache-2.0
// Forks the shim, from hvdd's main before it has any thread, and waits until its containment
// stands.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "daemon/shim/containment.h"
#include "daemon/shim/lease_word.h"
#include "daemon/shim/shim_channel.h"

namespace hvd::daemon {

// hvdd's side of a running shim.
struct ShimProcess {
  ContainmentLevel level = ContainmentLevel::kAuto;
  int pid = -1;
  Descriptor channel;
  std::unique_ptr<LeaseWord> lease;  // the shim maps it, too
  Descriptor listener;               // of the way back; invalid: there is none
  std::string way_back;              // its path as the workers see it
  std::string cgroup;                // for the sweep if the shim dies
  std::string weaker_why;            // why no stronger level works here; empty: the strongest does
};

// kAuto takes the strongest level that works; any other is taken as it is, or an error says why
// not.
absl::StatusOr<ShimProcess> StartShim(ContainmentLevel level);

}  // namespace hvd::daemon
