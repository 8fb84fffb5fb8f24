// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/set_table.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

std::shared_ptr<ProcessSet> Set(int32_t id, std::vector<int> ranks, int region) {
  auto set = std::make_shared<ProcessSet>();
  set->id = id;
  set->ranks = std::move(ranks);
  set->region = region;
  return set;
}

std::shared_ptr<ProcessSet> MemberSet(std::vector<int> ranks, const std::string& key) {
  auto set = Set(0, std::move(ranks), 0);
  set->key = key;
  return set;
}

TEST_CASE(
    "a set that is removed is told from one that never was, and its number is not used again") {
  SetTable table;
  table.Start(Set(0, {0, 1, 2}, 0));
  REQUIRE(*table.NextId() == 1);
  table.Insert(Set(1, {0, 2}, table.FreeRegion()));
  CHECK(table.ids() == std::vector<int32_t>{0, 1});
  CHECK(table.FindByRanks({0, 2})->id == 1);
  CHECK(table.FreeRegion() == 2);
  table.Erase(1);
  CHECK(table.Find(1) == nullptr);
  CHECK(table.Unknown(1) == "process set 1 has been removed");
  CHECK(table.Unknown(2).find("does not exist") != std::string::npos);
  CHECK(table.FreeRegion() == 1);
  CHECK(*table.NextId() == 2);
}

TEST_CASE("the key of a set of members is taken from its reservation to its release") {
  SetTable table;
  table.Start(Set(0, {0, 1, 2}, 0));
  const auto set = MemberSet({0, 1}, "pipeline");
  int32_t id = -1;
  REQUIRE(table.Reserve(set.get(), &id).ok());
  CHECK(set->region == kMaxProcessSets);
  const auto twin = MemberSet({0, 1}, "pipeline");
  CHECK(absl::IsAlreadyExists(table.Reserve(twin.get(), &id)));
  CHECK(id == -1);  // it is not made yet

  REQUIRE(table.ReserveChannels(20));
  set->channels = 20;
  set->id = 77;
  table.Publish(set);
  CHECK(absl::IsAlreadyExists(table.Reserve(twin.get(), &id)));
  CHECK(id == 77);
  CHECK(table.FindByRanks({0, 1}) == nullptr);  // not one that all ranks know

  CHECK(table.Withdraw(*set));
  CHECK_FALSE(table.Withdraw(*set));
  CHECK(absl::IsAlreadyExists(table.Reserve(twin.get(), &id)));
  CHECK_FALSE(table.ReserveChannels(20));
  table.Release(*set);
  CHECK(table.Reserve(twin.get(), &id).ok());
  CHECK(table.ReserveChannels(20));
}

TEST_CASE("a new epoch begins with the global set alone") {
  SetTable table;
  table.Start(Set(0, {0, 1}, 0));
  table.Insert(Set(*table.NextId(), {1}, 1));
  CHECK(table.TakeAll().size() == 2);
  CHECK(table.Find(0) == nullptr);
  table.Start(Set(0, {0, 1}, 0));
  CHECK(table.ids() == std::vector<int32_t>{0});
  CHECK(*table.NextId() == 1);
}

}  // namespace
}  // namespace hvd::rt
