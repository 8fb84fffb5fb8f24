// SPDX-License-Identifier: Apache-2.0
// The three ways in which a job's processes on a host are held together, strongest first:
//   namespace: the shim is init of a PID namespace; the kernel kills all with it
//   cgroup: a cgroup v2 of the job's own with cgroup.kill
//   subreaper: orphans come back to the shim, which freezes and kills the tree
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvd::daemon {

// The values are those of hvd.v1.Containment.
enum class ContainmentLevel { kAuto = 0, kNamespace = 1, kCgroup = 2, kSubreaper = 3 };

absl::string_view LevelName(ContainmentLevel level);
// "auto", "namespace", "cgroup", "subreaper".
bool ParseLevel(absl::string_view text, ContainmentLevel* level);

// The user and group that the caller had before it entered a user namespace.
struct OwnUser {
  uid_t user = 0;
  gid_t group = 0;
};

// The shim's hold on everything below it. Lives in the shim.
class Containment {
 public:
  // Made by the freshly forked shim, inside its clone flags. For kNamespace the caller is already
  // init; `own_user` is set if that took a user namespace.
  static absl::StatusOr<Containment> Enter(ContainmentLevel level,
                                           const std::optional<OwnUser>& own_user);

  ContainmentLevel level() const { return level_; }
  const std::string& cgroup() const { return cgroup_; }  // its directory; empty: none

  // Takes a child in that still waits at its gate.
  void Take(int pid) const;
  void KillAll(const std::string& mark) const;
  int CountLiving(const std::string& mark) const;
  // Removes what the level made outside the process tree.
  void Leave() const;

 private:
  ContainmentLevel level_ = ContainmentLevel::kAuto;
  std::string cgroup_;
};

// For hvdd, when the shim has died: ends what the cgroup still holds and removes it.
void EndCgroup(const std::string& directory);

}  // namespace hvd::daemon
