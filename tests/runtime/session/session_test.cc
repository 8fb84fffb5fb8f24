// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/session.h"

#include <catch2/catch.hpp>
#include <thread>

#include "runtime/session/host_arenas.h"
#include "tests/support/fake_daemon.h"

namespace hvd::rt {
namespace {

const MemoryNeed kNeed = [](const Topology&, int) { return HostPageBytes(3) + 4096; };

TEST_CASE("ranks meet epoch after epoch over one link") {
  FakeDaemon daemon({{"a", 2}});
  std::vector<std::string> seen[2];
  std::vector<std::thread> ranks;
  bool fine[2] = {true, true};
  for (int r = 0; r < 2; ++r) {
    ranks.emplace_back([&, r] {
      auto session = Session::Open(daemon.link(r));
      fine[r] = session.ok() && (*session)->member() == static_cast<uint64_t>(r) + 1;
      for (uint64_t epoch = 1; fine[r] && epoch <= 3; ++epoch) {
        auto grant = (*session)->Join(kNeed);
        fine[r] =
            grant.ok() && grant->epoch == epoch && grant->rank == r && grant->topology.size() == 2;
        if (!fine[r]) return;
        auto table = (*session)->Exchange(*grant, "address" + std::to_string(r), {});
        fine[r] = table.ok() && (*session)->Barrier(*grant).ok();
        if (table.ok()) seen[r] = table->addresses;
        grant->memory->page()->activity[r].calls++;
        fine[r] = fine[r] && (*session)->Leave(epoch).ok();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (int r = 0; r < 2; ++r) {
    CHECK(fine[r]);
    CHECK(seen[r] == std::vector<std::string>{"address0", "address1"});
  }
}

// Each rank writes a word into its arena; after the barrier each reads all of its host, from one
// epoch to the next. The last rank has no arena.
TEST_CASE("ranks of a host meet with their arenas, epoch after epoch") {
  const Topology topology({{"a", 3}, {"b", 2}});
  FakeDaemon daemon(topology.hosts());
  std::vector<std::string> seen(5);
  std::vector<std::thread> ranks;
  for (int r = 0; r < 5; ++r) {
    ranks.emplace_back([&, r] {
      Arena arena;
      const bool has_one = r < 4;
      auto memory = arena.Allocate(64);
      auto session = Session::Open(daemon.link(r));
      if (!memory.ok() || !session.ok()) return;
      const RankPlace& place = topology.place(r);
      for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
        auto grant = (*session)->Join(kNeed);
        if (!grant.ok()) return;
        *static_cast<char*>(*memory) = static_cast<char>('a' + r);
        auto meeting = (*session)->Exchange(*grant, "x", has_one ? arena.Share() : ArenaFile{});
        if (!meeting.ok()) return;
        const auto arenas = HostArenas::Map(std::move(meeting->arenas), place.local_rank,
                                            has_one ? &arena : nullptr);
        if (arenas->sees() == 0 || (arenas->Offer(*memory, 64) == 0) != has_one) return;
        for (int other = 0; other < place.local_size; ++other) {
          const std::byte* there = arenas->Address(other, 0, 64);
          seen[r] += there != nullptr ? static_cast<char>(*there) : '-';
        }
        if (!(*session)->Barrier(*grant).ok() || !(*session)->Leave(epoch).ok()) return;
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(seen == std::vector<std::string>{"abcabc", "abcabc", "abcabc", "d-d-", "d-d-"});
}

TEST_CASE("no daemon behind the link: an error that says so") {
  const auto session = Session::Open({-1, 0, std::string(32, 'a'), "/nowhere/link"});
  REQUIRE_FALSE(session.ok());
  CHECK(session.status().message().find("is the job still running") != std::string::npos);
}

}  // namespace
}  // namespace hvd::rt
