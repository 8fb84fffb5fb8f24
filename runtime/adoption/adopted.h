// SPDX-License-Identifier: Apache-2.0
// This process as a rank of a job that another launcher has started: the ranks find one another,
// the first of them starts hvdrun, and the daemon of each host takes its ranks in.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/adoption/claim_door.h"
#include "runtime/adoption/foreign_place.h"
#include "runtime/adoption/launcher_store.h"

namespace hvd::rt {

struct AdoptionTools {
  std::string library;                   // libhvd's path; hvdrun and hvdd lie beside it
  std::vector<std::string> environment;  // this process's
};

// Lives as long as the process. Threads: one at a time.
class Adopted {
 public:
  // Waits until the daemon of this host has come, for kAdoptionPatienceS at most.
  static absl::StatusOr<std::unique_ptr<Adopted>> Join(const ForeignPlace& place,
                                                       const AdoptionTools& tools);

  // HVD_LINK and what else hvdrun gives its workers; NAME=VALUE. It comes before the process's own.
  const std::vector<std::string>& environment() const { return claim_.environment; }

  // This process ends by itself, with this exit code: tells hvd's daemon and takes leave of the
  // launcher. To be called last; of a child that was forked it is nothing.
  void Leave(int exit_code);

 private:
  Adopted(Claim claim, std::unique_ptr<LauncherStore> store);
  static absl::StatusOr<Claim> Enter(const ForeignPlace& place, const AdoptionTools& tools,
                                     LauncherStore* store);

  const pid_t pid_;
  Claim claim_;
  std::unique_ptr<LauncherStore> store_;  // null: the launcher's was not needed
};

}  // namespace hvd::rt
