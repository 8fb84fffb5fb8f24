// SPDX-License-Identifier: Apache-2.0
// How many open files the programs need: what a limit is compared with, before it is met.
#pragma once

namespace hvd {

// The descriptor of a rank's door: out of the way of those that shells and make use.
inline constexpr int kDoorFd = 197;

// On each host: for hvdd and its links, and above the number of a rank's door.
inline constexpr int kLeastFilesOfHost = 256;
static_assert(kLeastFilesOfHost > kDoorFd + 32, "a rank could open little beside its door");

}  // namespace hvd
