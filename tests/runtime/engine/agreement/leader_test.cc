// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/leader.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "runtime/transport/loopback/loopback_transport.h"

namespace hvd::rt {
namespace {

// Two hosts of one rank each.
struct TwoLeaders {
  TwoLeaders() {
    for (int h = 0; h < 2; ++h) {
      memory.emplace_back(calloc(1, Board::Bytes(1, 2, 64)), free);
      boards.push_back(std::make_unique<Board>(BoardPlace{.page = &pages[h],
                                                          .memory = memory.back().get(),
                                                          .ranks_here = topology.ranks_of(h),
                                                          .world_size = 2,
                                                          .host = h,
                                                          .several_hosts = true,
                                                          .numbers = 64}));
      transports.push_back(network.TransportFor(h));
      leaders.push_back(std::make_unique<Leader>(
          LeaderParts{&topology, h, boards.back().get(), transports.back().get()}));
    }
  }
  Topology topology{{{"a", 1}, {"b", 1}}};
  LoopbackWorld network{2};
  HostPage pages[2];
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory;
  std::vector<std::unique_ptr<Board>> boards;
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<std::unique_ptr<Leader>> leaders;
};

TEST_CASE("a rank that leaves after the end of its epoch is not taken for the cause") {
  TwoLeaders two;
  Signature sum, leave;
  sum.kind = RequestKind::kAllreduce;
  leave.kind = RequestKind::kLeave;
  REQUIRE(two.boards[0]->Mark("x", {sum}).ok());
  REQUIRE(two.leaders[0]->Step().ok());
  AbortEpoch(&two.pages[1], {"rank 7 was killed", 7}, nullptr);
  REQUIRE(two.boards[1]->Mark("leave", {leave}).ok());
  REQUIRE(two.boards[1]->NoteLeft().ok());
  CHECK(two.leaders[1]->Step().status().message() == "rank 7 was killed");
  absl::Status heard;
  for (int i = 0; i < 100 && heard.ok(); ++i) heard = two.leaders[0]->Step().status();
  CHECK(heard.message() == "rank 7 was killed");
  CHECK(CauseOf(two.pages[0]).rank == 7);
}

}  // namespace
}  // namespace hvd::rt
