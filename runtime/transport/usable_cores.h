// SPDX-License-Identifier: Apache-2.0
// How many cores the ranks of this host may really use.
#pragma once

#include <string>
#include <string_view>

namespace hvd::rt {

// Cores that can be used: `had` (0: this process's affinity) lowered by the quotas of its cgroups.
// At least 1. Whoever pins ranks says how many they had: an affinity shows a rank only its own.
int UsableCores(int had = 0);

// The smallest CPU quota, in cores, of the cgroups that `proc_self_cgroup` (the text of
// /proc/self/cgroup) names and of those above them, under `cgroup_root`; version 1 and 2.
// Infinity where no quota is set.
double QuotaCores(std::string_view proc_self_cgroup, const std::string& cgroup_root);

}  // namespace hvd::rt
