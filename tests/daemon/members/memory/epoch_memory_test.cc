// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/memory/epoch_memory.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

// The memory of one rank, as its worker sees it and as hvdd reads it.
class OneRank {
 public:
  OneRank() {
    auto made = EpochMemory::Create({.epoch = 1, .slots = {0}});
    REQUIRE(made.ok());
    memory_ = *std::move(made);
    void* const mapped = mmap(nullptr, HostPageBytes(1), PROT_READ | PROT_WRITE, MAP_SHARED,
                              memory_->Descriptors()[0], 0);
    REQUIRE(mapped != MAP_FAILED);
    page_ = static_cast<HostPage*>(mapped);
  }
  ~OneRank() { munmap(page_, HostPageBytes(1)); }
  EpochMemory& memory() { return *memory_; }
  RankActivity& activity() { return page_->activity[0]; }

 private:
  std::shared_ptr<EpochMemory> memory_;
  HostPage* page_ = nullptr;
};

TEST_CASE("what a rank's device works on is told beside what the rank does") {
  OneRank rank;
  CHECK_FALSE(rank.memory().AnyUnderWay());
  BeginWork(&rank.activity().device, 3, "allreduce 'x' and 1 more");
  CHECK(rank.memory().AnyUnderWay());
  CHECK_FALSE(rank.memory().HasPending(0));  // nobody asks the rank itself
  CHECK(rank.memory().Activity(0) ==
        "its device works on allreduce 'x' and 1 more; 0 collectives done");
  REQUIRE(rank.memory().Progress().size() == 1);
  CHECK(rank.memory().Progress()[0].on_device);
  CHECK(rank.memory().Progress()[0].what == "allreduce 'x' and 1 more");

  rank.activity().pending = 1;
  BeginWork(&rank.activity().work, 8, "barrier");
  CHECK(rank.memory().Activity(0) ==
        "in barrier, its device works on allreduce 'x' and 1 more; 0 collectives done");
  REQUIRE(rank.memory().Progress().size() == 2);
  CHECK_FALSE(rank.memory().Progress()[1].on_device);
  CHECK(rank.memory().Progress()[1].work == 8);

  EndWork(&rank.activity().device);
  CHECK(rank.memory().Activity(0) == "in barrier; 0 collectives done");
  CHECK(rank.memory().Progress().size() == 1);
}

}  // namespace
}  // namespace hvd::daemon
