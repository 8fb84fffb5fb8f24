// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/leader_sources.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

// Six hosts in a tree of two children each: 0 has 1 and 2, 1 has 3 and 4, 2 has 5.
Topology SixHosts() {
  return Topology({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}, {"f", 6}});
}

TEST_CASE("a host's sources are its own board and then its children, with all that is below them") {
  const LeaderSources root(SixHosts(), 0, 2);
  CHECK(root.children() == std::vector<int>{1, 2});
  CHECK(root.RanksBelow(0) == 1);
  CHECK(root.RanksBelow(1) == 2 + 4 + 5);
  CHECK(root.RanksBelow(2) == 3 + 6);
  CHECK(root.RanksBelow() == 21);
  CHECK(root.all() == 0b111);
  const LeaderSources inner(SixHosts(), 1, 2);
  CHECK(inner.children() == std::vector<int>{3, 4});
  CHECK(inner.RanksBelow() == 11);
}

TEST_CASE("a host with nobody below it has itself as its one source") {
  const LeaderSources leaf(SixHosts(), 5, 2);
  CHECK(leaf.children().empty());
  CHECK(leaf.all() == 1);
  CHECK(leaf.HostOf(0) == 5);
  CHECK(leaf.RanksBelow() == 6);
}

TEST_CASE("hosts and sources find one another; a host that is no child is no source") {
  const LeaderSources root(SixHosts(), 0, 2);
  for (const int child : root.children()) CHECK(root.HostOf(root.Of(child)) == child);
  CHECK(root.HostOf(0) == 0);
  CHECK(root.Of(0) == -1);
  CHECK(root.Of(3) == -1);
}

}  // namespace
}  // namespace hvd::rt
