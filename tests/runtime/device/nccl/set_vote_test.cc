// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/set_vote.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

using Kind = SetWay::Kind;

// Returns the votes of two ranks of one host, each with a GPU of its own.
std::vector<SetVote> Votes() {
  std::vector<SetVote> votes(2);
  for (size_t i = 0; i < votes.size(); ++i) {
    votes[i].nccl_version = 22809;
    votes[i].gpu[0] = static_cast<uint8_t>(i + 1);
  }
  return votes;
}

SetWay Decide(const std::vector<SetVote>& votes, GpuOperations asked = GpuOperations::kAuto) {
  const int ranks[] = {3, 7};
  return DecideWay(asked, votes, ranks);
}

TEST_CASE("a set goes by NCCL where every rank has it, and a GPU of its own") {
  CHECK(Decide(Votes()).kind == Kind::kNccl);
  CHECK_FALSE(Decide(Votes()).ordered);
  CHECK(Decide(Votes(), GpuOperations::kNccl).kind == Kind::kNccl);
  CHECK(Decide(Votes(), GpuOperations::kHost).kind == Kind::kHost);
}

TEST_CASE("one rank in several sets is enough for an order") {
  auto votes = Votes();
  votes[1].in_several = 1;
  CHECK(Decide(votes).ordered);
}

TEST_CASE("why a set does not go by NCCL names the rank") {
  auto votes = Votes();
  std::string why;
  SECTION("no library") {
    votes[1].nccl_version = 0;
    votes[1].SetWhyNot("libnccl.so.2: no such file\nand more");
    why = "rank 7: libnccl.so.2: no such file and more";
  }
  SECTION("another version") {
    votes[1].nccl_version = 21903;
    why = "rank 3 has NCCL 2.28.9, rank 7 has NCCL 2.19.3";
  }
  SECTION("one GPU") {
    votes[1].gpu = votes[0].gpu;
    why = "ranks 3 and 7 share a GPU";
  }
  SECTION("another set without an order") {
    votes[1].has_unordered = 1;
    why =
        "rank 7 uses NCCL in another process set, which was there alone when it began; make all "
        "process sets before the first call on a GPU";
  }
  CHECK(Decide(votes).kind == Kind::kHost);
  CHECK(Decide(votes).why == why);
  CHECK(Decide(votes, GpuOperations::kNccl).kind == Kind::kRefused);
  CHECK(Decide(votes, GpuOperations::kNccl).why == why);
}

TEST_CASE("with a rank that brings nothing a set goes by way of the host, whatever was asked") {
  const auto asked = GENERATE(GpuOperations::kAuto, GpuOperations::kNccl);
  auto votes = Votes();
  votes[0].has_joined = 1;
  CHECK(Decide(votes, asked).kind == Kind::kHost);
  CHECK(Decide(votes, asked).why == "rank 3 has joined before it has shown a GPU");
}

TEST_CASE("the same GPU of two hosts is two, and NCCL may be told to share one") {
  auto votes = Votes();
  votes[1].gpu = votes[0].gpu;
  votes[1].host = 1;
  CHECK(Decide(votes).kind == Kind::kNccl);
  votes[1].host = 0;
  votes[0].shares = 1;
  CHECK(Decide(votes, GpuOperations::kNccl).kind == Kind::kRefused);
  votes[1].shares = 1;
  CHECK(Decide(votes, GpuOperations::kNccl).kind == Kind::kNccl);
  CHECK(Decide(votes).kind == Kind::kHost);  // not without being asked
}

TEST_CASE("a long reason is cut") {
  SetVote vote;
  vote.SetWhyNot(std::string(1000, 'x'));
  CHECK(std::string(vote.why_not.data()) == std::string(vote.why_not.size() - 1, 'x'));
}

}  // namespace
}  // namespace hvd::rt
