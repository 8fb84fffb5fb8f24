// SPDX-License-Identifier: Apache-2.0
// Complex numbers that are not real, on every way.
#include <catch2/catch.hpp>
#include <complex>

#include "absl/strings/str_cat.h"
#include "tests/runtime/collective/worlds.h"

namespace hvd::rt::test {
namespace {

struct Case {
  hvd_op_t op = HVD_SUM;
  size_t count = 1;
  double prescale = 1;
  double postscale = 1;
};

// Units and small Gaussian integers: all that comes of them is exact.
template <class Real>
std::complex<Real> ValueOf(const Case& c, int rank, size_t i) {
  constexpr std::complex<Real> kUnits[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  const size_t turn = i * 3 + static_cast<size_t>(rank) + i / 7;
  if (c.op == HVD_PRODUCT) {
    return rank < 4 && turn % 5 == 0 ? std::complex<Real>(1, 2) : kUnits[turn % 4];
  }
  return {static_cast<Real>(turn % 7) - 3, static_cast<Real>(turn % 5) * 2 - 4};
}

template <class Real>
std::complex<Real> ExpectedOf(const Case& c, int ranks, size_t i) {
  std::complex<double> result = c.op == HVD_PRODUCT ? 1 : 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::complex<double> value = std::complex<double>(ValueOf<Real>(c, rank, i)) * c.prescale;
    result = c.op == HVD_PRODUCT ? result * value : result + value;
  }
  if (c.op == HVD_AVERAGE) result /= ranks;
  return std::complex<Real>(result * c.postscale);
}

template <class Real>
std::string CheckAllreduce(Collectives& ranks, hvd_dtype_t dtype, const Case& c) {
  std::vector<std::complex<Real>> data(c.count);
  for (size_t i = 0; i < c.count; ++i) data[i] = ValueOf<Real>(c, ranks.rank(), i);
  ReduceArgs args{data.data(), data.data(), c.count, dtype, c.op};
  args.prescale = c.prescale;
  args.postscale = c.postscale;
  if (absl::Status done = ranks.Allreduce(args); !done.ok()) return done.ToString();
  const Real tolerance = c.op == HVD_AVERAGE ? std::numeric_limits<Real>::epsilon() * 4 : 0;
  for (size_t i = 0; i < c.count; ++i) {
    const auto want = ExpectedOf<Real>(c, ranks.size(), i);
    if (std::abs(data[i] - want) <= tolerance * std::abs(want)) continue;
    return absl::StrCat("dtype ", dtype, " op ", c.op, " count ", c.count, ": element ", i, " is ",
                        data[i].real(), " + ", data[i].imag(), "i, not ", want.real(), " + ",
                        want.imag(), "i");
  }
  return "";
}

std::string CheckBoth(Collectives& ranks, const Case& c) {
  const std::string wrong = CheckAllreduce<float>(ranks, HVD_COMPLEX64, c);
  return wrong.empty() ? CheckAllreduce<double>(ranks, HVD_COMPLEX128, c) : wrong;
}

TEST_CASE("complex numbers: sums, averages and products, scaled by real numbers") {
  for (const WorldMaker& make : AllWorlds()) {
    const std::unique_ptr<World> world = make();
    INFO(world->name());
    const std::string complaint = world->Run([](Collectives& ranks) -> std::string {
      for (const hvd_op_t op : {HVD_SUM, HVD_AVERAGE, HVD_PRODUCT}) {
        for (const size_t count : {3, 30011}) {
          std::string wrong = CheckBoth(ranks, {op, count});
          if (wrong.empty()) wrong = CheckBoth(ranks, {op, count, 0.5, 4});
          if (!wrong.empty()) return wrong;
        }
      }
      return "";
    });
    REQUIRE(complaint == "");
  }
}

}  // namespace
}  // namespace hvd::rt::test
