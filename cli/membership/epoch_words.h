// SPDX-License-Identifier: Apache-2.0
// An epoch in words for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/membership/actions.h"

namespace hvd::cli {

// "host2 lost; epoch 3: 6 ranks on 2 hosts; resumed at commit 41 after 0.3 s": first why.
std::string SayEpoch(const EpochRecord& record);

// "2 ranks joined"
std::string SayRanks(int count, const char* did);

// The first few.
std::string JoinCauses(const std::vector<std::string>& causes);

}  // namespace hvd::cli
