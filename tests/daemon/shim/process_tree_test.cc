#include "daemon/shim/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

namespace hvd {
namespace {

TEST_CASE("a stat line with a name made to confuse") {
  ProcessFact fact;
  REQUIRE(ParseStat("123 (a) Z 9 (x) S 45 6 78 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876543 0",
                    &fact));
  CHECK(fact.pid == 123);
  CHECK(fact.state == 'S');
  CHECK(fact.parent == 45);
  CHECK(fact.group == 6);
  CHECK(fact.born == 9876543);
  CHECK(!ParseStat("", &fact));
  CHECK(!ParseStat("12 (cut", &fact));
}

TEST_CASE("descendants, also through a snapshot that holds a circle") {
  std::vector<ProcessFact> all = {{10, 1, 10, 'S'}, {11, 10, 10, 'S'}, {12, 11, 12, 'S'},
                                  {20, 1, 20, 'S'}, {30, 31, 30, 'S'}, {31, 30, 30, 'S'}};
  std::vector<int> pids;
  for (const ProcessFact& fact : Descendants(all, 10)) pids.push_back(fact.pid);
  std::sort(pids.begin(), pids.end());
  CHECK(pids == std::vector<int>{11, 12});
  CHECK(Descendants(all, 30).size() == 1);
}

TEST_CASE("what belongs to no living rank is left over") {
  constexpr int kShim = 1, kRank = 10;
  const std::vector<ProcessFact> all = {
      {kRank, kShim, kRank, 'S'}, {11, kRank, 11, 'S'}, {12, 11, 12, 'S'},  // of its own groups
      {13, kShim, kRank, 'S'},                                              // an orphan of the rank
      {14, kShim, 14, 'S'},       {15, 14, 99, 'S'},                        // whose, is not known
      {40, 2, kRank, 'S'}};                                                 // not below the shim
  std::set<int> pids;
  for (const ProcessFact& fact : Leftovers(all, kShim, {kRank})) pids.insert(fact.pid);
  CHECK(pids == std::set<int>{14, 15});
  CHECK(Leftovers(all, kShim, {}).size() == 6);
}

TEST_CASE("this process is found in /proc") {
  const std::vector<ProcessFact> all = ReadProcesses();
  CHECK(std::any_of(all.begin(), all.end(),
                    [](const ProcessFact& fact) { return fact.pid == getpid(); }));
}

}  // namespace
}  // namespace hvd
