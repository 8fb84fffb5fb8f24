#include "hostfile/core_plan.h"

#include <catch2/catch.hpp>
#include <numeric>

namespace hvd {
namespace {

using Cores = std::vector<int>;

TEST_CASE("cores are shared evenly, earlier ranks get one more") {
  const Cores cores = {0, 1, 2, 3, 8, 9, 10};
  CHECK(CoresFor(0, 3, cores) == Cores{0, 1, 2});
  CHECK(CoresFor(1, 3, cores) == Cores{3, 8});
  CHECK(CoresFor(2, 3, cores) == Cores{9, 10});
  CHECK(CoresFor(0, 1, cores) == cores);
}

TEST_CASE("every core belongs to exactly one rank") {
  for (int count = 1; count <= 40; ++count) {
    Cores cores(count);
    std::iota(cores.begin(), cores.end(), 5);
    for (int size = 1; size <= count; ++size) {
      Cores all;
      for (int rank = 0; rank < size; ++rank) {
        const Cores mine = CoresFor(rank, size, cores);
        CHECK(static_cast<int>(mine.size()) - count / size <= 1);
        all.insert(all.end(), mine.begin(), mine.end());
      }
      REQUIRE(all == cores);
    }
  }
}

TEST_CASE("more ranks than cores: as many on each, or all on all") {
  const Cores cores = {0, 3};
  CHECK(CoresFor(2, 3, cores) == cores);
  CHECK(CoresFor(1, 4, cores) == Cores{0});
  CHECK(CoresFor(2, 4, cores) == Cores{3});
  CHECK(CoresFor(0, 1, Cores{}).empty());
}

TEST_CASE("cores are written as ranges") {
  CHECK(FormatCores(Cores{}) == "-");
  CHECK(FormatCores(Cores{3}) == "3");
  CHECK(FormatCores(Cores{0, 1, 2, 8, 10, 11}) == "0-2,8,10-11");
}

}  // namespace
}  // namespace hvd
