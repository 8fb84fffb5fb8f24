// SPDX-License-Identifier: Apache-2.0
// A link between two hosts over which no data passes, in words for people. Pure.
#pragma once

#include <string>

namespace hvd::cli {

// "no data passes between host0 and host1: cannot connect from …". `why` may be empty.
std::string SayLink(const std::string& one, const std::string& other, const std::string& why);

// A hint at what a person may look for.
inline constexpr char kLinkHint[] =
    "is a route, a firewall or a cable of the data's network in the way? (--network-interfaces, "
    "HVD_NET_DEVICES, chooses it; the ranks connect at free ports of it)";

}  // namespace hvd::cli
