// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/roster.h"

#include <catch2/catch.hpp>

#include "proto/page/host_page.h"

namespace hvd::cli {
namespace {

RosterMember At(int host, int slot, int share) {
  RosterMember member;
  member.host = host;
  member.slot = slot;
  member.share = share;
  return member;
}

}  // namespace

TEST_CASE("a host that comes back has another number, and only the newest lives", "[membership]") {
  Roster roster;
  CHECK(roster.AddHost("a") == 0);
  CHECK(roster.AddHost("b") == 1);
  CHECK(roster.LiveHost("a") == 0);
  roster.LoseHost(0);
  CHECK(roster.LiveHost("a") == -1);
  CHECK(roster.AddHost("a") == 2);
  CHECK(roster.LiveHost("a") == 2);
}

TEST_CASE("a slot is taken again as late as can be", "[membership]") {
  Roster roster;
  roster.AddHost("a");
  CHECK(roster.FreeSlot(0) == 0);
  const uint64_t member = roster.Add(At(0, 0, 0));
  CHECK(member == 1);
  CHECK(roster.FreeSlot(0) == 1);
  roster.Of(member).holds_slot = false;
  CHECK(roster.FreeSlot(0) == 1);
  for (int slot = 1; slot < kMaxLocalRanks; ++slot) roster.Add(At(0, slot, slot));
  CHECK(roster.FreeSlot(0) == 0);
  roster.Of(member).holds_slot = true;
  CHECK(roster.FreeSlot(0) == -1);
}

TEST_CASE("a share is free when its rank is dead, unless its process lives or it ended well",
          "[membership]") {
  Roster roster;
  roster.AddHost("a");
  const uint64_t member = roster.Add(At(0, 0, 3));
  CHECK(roster.ShareFree(0, 2));
  CHECK_FALSE(roster.ShareFree(0, 3));
  roster.Of(member).alive = false;
  CHECK(roster.ShareFree(0, 3));
  roster.Of(member).lingers = true;
  CHECK_FALSE(roster.ShareFree(0, 3));
  roster.Of(member).holds_slot = false;
  CHECK(roster.ShareFree(0, 3));
  roster.ended_well()[member] = {};
  CHECK_FALSE(roster.ShareFree(0, 3));
}

TEST_CASE("nobody of a lost host lives or stands", "[membership]") {
  Roster roster;
  roster.AddHost("a");
  const uint64_t member = roster.Add(At(0, 0, 0));
  roster.Of(member).stands = true;
  CHECK(roster.AnyStands());
  roster.LoseHost(0);
  CHECK_FALSE(roster.AnyStands());
  CHECK_FALSE(roster.AnyLives());
}

TEST_CASE("ranks are those of the last epoch alone", "[membership]") {
  Roster roster;
  roster.AddHost("a");
  for (const int slot : {0, 1, 2}) roster.Add(At(0, slot, slot));
  roster.NumberRanks({1, 2});
  roster.NumberRanks({3, 1});
  CHECK(roster.Of(1).last_rank == 1);
  CHECK(roster.Of(2).last_rank == -1);
  CHECK(roster.Of(3).last_rank == 0);
}

}  // namespace hvd::cli
