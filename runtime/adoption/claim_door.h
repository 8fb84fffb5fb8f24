// SPDX-License-Identifier: Apache-2.0
// Where a rank that another launcher has started waits for the daemon of its host: a socket in the
// abstract namespace, at which only its own user is heard.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace hvd::rt {

// The worker's place in the job, as the daemon gives it.
struct Claim {
  Descriptor talk;                       // to the daemon's shim, for the process's life
  Descriptor door;                       // of HVD_LINK
  std::vector<std::string> environment;  // NAME=VALUE
};

class ClaimDoor {
 public:
  // AlreadyExists: another process of this job speaks for the same rank.
  static absl::StatusOr<ClaimDoor> Open(const std::string& name);

  // `helper`: whoever is to bring the daemon here; its end is an error. -1: nobody to look at.
  // `waits`: said on stderr where it takes long; empty: nothing is.
  // DeadlineExceeded: nobody has come by `until`.
  absl::StatusOr<Claim> Await(Descriptor helper, std::string waits,
                              std::chrono::steady_clock::time_point until);

 private:
  explicit ClaimDoor(Descriptor listener) : listener_(std::move(listener)) {}

  Descriptor listener_;
};

// Tells the ranks that wait, or will soon, at these doors that no daemon comes, and why. `names`
// that nobody opens within `patience` are left.
void RefuseClaims(std::vector<std::string> names, const std::string& why,
                  std::chrono::milliseconds patience);

}  // namespace hvd::rt
