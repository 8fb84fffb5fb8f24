// SPDX-License-Identifier: Apache-2.0
// A host list that names this machine more than once names one host: its ranks share its cores, and
// their local ranks go on counting.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hostfile/host_slots.h"

namespace hvd::cli {

// Gives the first of this machine's names the slots of the others, which leave the list. Returns a
// line for each that left; an error if the slots together are more than max_slots or can be.
absl::StatusOr<std::vector<std::string>> MergeOwnNames(
    const std::function<bool(const HostSlots&)>& is_local_host, std::vector<HostSlots>* hosts);

}  // namespace hvd::cli
