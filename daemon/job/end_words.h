// SPDX-License-Identifier: Apache-2.0
// A rank's death in link A's words. Pure.
#pragma once

#include <array>
#include <string>

#include "daemon/members/rank_death.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::daemon {

// MemberDied: at once, on the word of the shim and of link B.
v1::Event DiedEvent(const RankDeath& death);
// RankExited: the whole end. `shim_lost`: the kernel ends ranks before hvdd hears of the end of the
// shim that takes them along.
v1::Event ExitedEvent(const RankDeath& death, bool shim_lost, TimePoint now);
// Both for a member that has got no place here, since no table holds it.
std::array<v1::Event, 2> RefusedEvents(uint64_t member, const std::string& why);

}  // namespace hvd::daemon
