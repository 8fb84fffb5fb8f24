#include "runtime/session/session.h"

#include <catch2/catch.hpp>
#include <thread>

#include "tests/support/fake_daemon.h"

namespace hvd {
namespace {

constexpr size_t kBytes = kHostPageBytes + 4096;

TEST_CASE("ranks meet epoch after epoch over one link") {
  FakeDaemon daemon({{"a", 2}});
  std::vector<std::string> seen[2];
  std::vector<std::thread> ranks;
  bool fine[2] = {true, true};
  for (int r = 0; r < 2; ++r) {
    ranks.emplace_back([&, r] {
      auto session = Session::Open(daemon.link(r));
      fine[r] = session.ok() && (*session)->rank() == r && (*session)->topology().size() == 2;
      for (uint64_t epoch = 1; fine[r] && epoch <= 3; ++epoch) {
        auto grant = (*session)->Join(epoch - 1, kBytes);
        fine[r] = grant.ok() && grant->epoch == epoch;
        if (!fine[r]) return;
        auto table = (*session)->Exchange(*grant, "address" + std::to_string(r));
        fine[r] = table.ok() && (*session)->Barrier(*grant).ok();
        if (table.ok()) seen[r] = *table;
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

TEST_CASE("no daemon behind the link: an error that says so") {
  const auto session = Session::Open({-1, 0, std::string(32, 'a'), "/nowhere/link"});
  REQUIRE_FALSE(session.ok());
  CHECK(session.status().message().find("is the job still running") != std::string::npos);
}

}  // namespace
}  // namespace hvd
