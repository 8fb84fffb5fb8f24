// SPDX-License-Identifier: Apache-2.0
// The driver's hosts, by number, in the order of their coming: how each is reached, and what has
// come of it. Plain data of the driver's thread; a host is only ever added.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "cli/reach/host.h"
#include "cli/reach/ssh_command.h"

namespace hvd::cli {

struct DriverHosts {
  std::deque<HostPort> ports;
  std::deque<HostTarget> targets;

  int count() const { return static_cast<int>(ports.size()); }
  const std::string& Name(int host) const { return targets[host].host.name; }
  void Add(HostTarget target) {
    targets.push_back(std::move(target));
    ports.emplace_back();
  }
};

}  // namespace hvd::cli
