// SPDX-License-Identifier: Apache-2.0
#include "placement/core_plan.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <string>

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

Cores Range(int first, int last) {
  Cores cores(last - first + 1);
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

// By slot, each set in words.
std::string Planned(const CoreWish& wish) {
  std::string text;
  for (const Cores& share : PlanCores(wish)) text += (text.empty() ? "" : " ") + FormatCores(share);
  return text;
}

TEST_CASE("slots near the same cores share these, the others what is left") {
  const Cores low = Range(0, 3);
  const Cores high = Range(4, 7);
  CHECK(Planned({Range(0, 7), {high, low, high, low}}) == "4-5 0-1 6-7 2-3");
  CHECK(Planned({Range(0, 7), {high, {}}}) == "4-7 0-3");
  CHECK(Planned({Range(0, 7), {{}, high, {}, {}}, true}) == "0-1 4-7 2 3");
  // Only cores of the host count.
  CHECK(Planned({Range(2, 5), {high, low}}) == "4-5 2-3");
}

TEST_CASE("near cores that are too few, unknown or overlap in part leave even shares") {
  CHECK(Planned({Range(0, 3), {{}, {}}}) == "0-1 2-3");
  CHECK(Planned({Range(0, 3), {{3}, {3}, {3}, {3}}, true}) == "0 1 2 3");
  CHECK(Planned({Range(0, 3), {{2, 3}, {1, 2}}, true}) == "0-1 2-3");
  CHECK(Planned({Range(0, 3), {Range(0, 3), {}}, true}) == "0-1 2-3");
  CHECK(Planned({Range(0, 3), {Range(8, 9), Range(8, 9)}, true}) == "0-1 2-3");
  CHECK(Planned({{0, 3}, {{3}, {3}, {0}, {0}}, true}) == "0 0 3 3");
}

TEST_CASE("a slot loses cores for near ones only where it may") {
  const Cores low = Range(0, 3);
  CHECK(Planned({Range(0, 7), {low, low}, true}) == "0-1 2-3");
  CHECK(Planned({Range(0, 7), {low, low}, false}) == "0-3 4-7");
  CHECK(Planned({Range(0, 7), {Range(4, 7)}, false}) == "0-7");
  CHECK(Planned({Range(0, 7), {Range(4, 7)}, true}) == "4-7");
}

}  // namespace
}  // namespace hvd
