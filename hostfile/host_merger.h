// SPDX-License-Identifier: Apache-2.0
// Collects the mentions of hosts: a host that is mentioned again gets more slots, not a twin.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "hostfile/host_item.h"
#include "hostfile/host_slots.h"

namespace hvd {

class HostMerger {
 public:
  // `unstated`: the slots of a mention that states none.
  explicit HostMerger(int unstated) : unstated_(unstated) {}

  // Adds all hosts of an item. `where` is kept for later messages; the error points into `line`.
  absl::Status Add(const SourceLine& line, const HostItem& item, const std::string& where);

  std::vector<HostSlots> Take() { return std::move(hosts_); }
  bool empty() const { return hosts_.empty(); }

 private:
  absl::Status Merge(const SourceLine& line, const HostItem& item, HostSlots* known);
  int SlotsOf(const HostItem& item) const;

  const int unstated_;
  std::vector<HostSlots> hosts_;
  std::unordered_map<std::string, size_t> index_;  // by name in lower case, as DNS compares names
};

}  // namespace hvd
