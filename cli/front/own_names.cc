// SPDX-License-Identifier: Apache-2.0
#include "cli/front/own_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "hostfile/host_item.h"

namespace hvd::cli {
namespace {

absl::Status AddSlots(const HostSlots& other, HostSlots* own) {
  if (own->max_slots == 0 || (other.max_slots != 0 && other.max_slots < own->max_slots)) {
    own->max_slots = other.max_slots;
  }
  own->slots += other.slots;
  const int most = own->max_slots == 0 ? kMaxRanks : own->max_slots;
  if (own->slots <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      own->name, " (", own->where, ") and ", other.name, " (", other.where,
      ") are both this machine, which then has ", own->slots, " slots, more than its ",
      own->max_slots == 0 ? "" : "max_slots of ", most, "; give it fewer slots here or there"));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> MergeOwnNames(
    const std::function<bool(const HostSlots&)>& is_local_host, std::vector<HostSlots>* hosts) {
  std::vector<std::string> merged;
  std::vector<HostSlots> kept;
  int own = -1;  // in `kept`
  for (HostSlots& host : *hosts) {
    const bool local = is_local_host(host);
    if (!local || own < 0) {
      if (local) own = static_cast<int>(kept.size());
      kept.push_back(std::move(host));
      continue;
    }
    if (absl::Status added = AddSlots(host, &kept[own]); !added.ok()) return added;
    merged.push_back(absl::StrCat(host.name, " (", host.where, ") is this machine, as ",
                                  kept[own].name, " (", kept[own].where, ") is: one host with ",
                                  kept[own].slots, " slots"));
  }
  *hosts = std::move(kept);
  return merged;
}

}  // namespace hvd::cli
