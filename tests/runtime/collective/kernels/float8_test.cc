// SPDX-License-Identifier: Apache-2.0
// The floats of 8 bits: every pattern, every rounding, and sums that are exact on every way.
#include "runtime/collective/kernels/float8.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/runtime/collective/numbers.h"
#include "tests/runtime/collective/worlds.h"

namespace hvd::rt::test {
namespace {

using Bytes = std::vector<unsigned char>;

uint8_t EncodedBy(hvd_dtype_t dtype, double value) {
  return dtype == HVD_FLOAT8_E4M3FN ? Float8<E4m3fn>::Encode(value) : Float8<E5m2>::Encode(value);
}
double DecodedBy(hvd_dtype_t dtype, uint8_t bits) {
  return dtype == HVD_FLOAT8_E4M3FN ? Float8<E4m3fn>::Decode(bits) : Float8<E5m2>::Decode(bits);
}

constexpr hvd_dtype_t kFloat8s[] = {HVD_FLOAT8_E4M3FN, HVD_FLOAT8_E5M2};

TEST_CASE("float8: every pattern is the number that it should be, and comes back") {
  for (const hvd_dtype_t dtype : kFloat8s) {
    for (int i = 0; i < 256; ++i) {
      const auto bits = static_cast<uint8_t>(i);
      const double want = Decode(dtype, &bits), got = DecodedBy(dtype, bits);
      INFO("dtype " << dtype << " pattern " << i);
      if (std::isnan(want)) {
        REQUIRE(std::isnan(got));
        REQUIRE(EncodedBy(dtype, got) == 0x7f);
      } else {
        REQUIRE(got == want);
        REQUIRE(std::signbit(got) == std::signbit(want));
        REQUIRE(EncodedBy(dtype, got) == bits);
      }
    }
  }
  CHECK(DecodedBy(HVD_FLOAT8_E4M3FN, 0x7e) == 448);
  CHECK(DecodedBy(HVD_FLOAT8_E4M3FN, 0x01) == 0x1p-9);
  CHECK(DecodedBy(HVD_FLOAT8_E5M2, 0x7b) == 57344);
  CHECK(DecodedBy(HVD_FLOAT8_E5M2, 0x01) == 0x1p-16);
}

TEST_CASE("float8: rounded to nearest even; too large is infinity where there is one") {
  std::mt19937_64 random(5);
  for (const hvd_dtype_t dtype : kFloat8s) {
    std::vector<double> values = {0x1p-1070, 0x1p1000, INFINITY};
    for (int bits = 0; bits < 0x7c; ++bits) {
      const double here = DecodedBy(dtype, static_cast<uint8_t>(bits));
      const double next = DecodedBy(dtype, static_cast<uint8_t>(bits + 1));
      const double middle = std::isinf(next) ? 61440 : (here + next) / 2;
      for (const double value : {here, middle, (here + middle) / 2}) {
        values.insert(values.end(), {value, std::nextafter(value, 0), std::nextafter(value, 1e9)});
      }
    }
    for (int i = 0; i < 20000; ++i) {
      values.push_back(std::ldexp(static_cast<double>(random()), static_cast<int>(i % 40) - 84));
    }
    for (const double value : values) {
      for (const double one : {value, -value}) {
        unsigned char want = 0;
        Encode(dtype, one, &want);
        INFO("dtype " << dtype << " of " << one);
        REQUIRE(EncodedBy(dtype, one) == want);
      }
    }
  }
  CHECK(EncodedBy(HVD_FLOAT8_E4M3FN, -1e300) == 0xfe);
  CHECK(EncodedBy(HVD_FLOAT8_E5M2, 61439) == 0x7b);
  CHECK(EncodedBy(HVD_FLOAT8_E5M2, 61440) == 0x7c);
}

// Returns a rank's values: any patterns, but few of those that are not finite.
Bytes PatternsOf(hvd_dtype_t dtype, int rank, size_t count) {
  std::mt19937_64 random(rank * 10 + dtype);
  Bytes patterns(count);
  for (auto& pattern : patterns) {
    do pattern = static_cast<unsigned char>(random());
    while (!std::isfinite(Decode(dtype, &pattern)) && random() % 32 != 0);
  }
  return patterns;
}

std::string CheckExactSums(Collectives& ranks, hvd_dtype_t dtype, hvd_op_t op, size_t count) {
  Bytes data = PatternsOf(dtype, ranks.rank(), count);
  const absl::Status done = ranks.Allreduce({data.data(), data.data(), count, dtype, op});
  if (!done.ok()) return done.ToString();
  std::vector<double> sums(count);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const Bytes theirs = PatternsOf(dtype, rank, count);
    for (size_t i = 0; i < count; ++i) {
      const double value = Decode(dtype, &theirs[i]);
      sums[i] = rank == 0 ? value : sums[i] + value;  // 0 + -0 were not -0
    }
  }
  for (size_t i = 0; i < count; ++i) {
    unsigned char want = 0;
    Encode(dtype, op == HVD_AVERAGE ? sums[i] / ranks.size() : sums[i], &want);
    if (std::isnan(Decode(dtype, &want)) && std::isnan(Decode(dtype, &data[i]))) continue;
    if (data[i] == want) continue;
    return absl::StrCat("dtype ", dtype, " op ", op, " count ", count, ": element ", i, " is ",
                        Decode(dtype, &data[i]), ", the sum ", sums[i]);
  }
  return "";
}

TEST_CASE("float8: sums are exact until they are rounded, on one host and several") {
  for (const WorldMaker& make : AllWorlds()) {
    const std::unique_ptr<World> world = make();
    INFO(world->name());
    const std::string complaint = world->Run([](Collectives& ranks) -> std::string {
      for (const hvd_dtype_t dtype : kFloat8s) {
        for (const hvd_op_t op : {HVD_SUM, HVD_AVERAGE}) {
          for (const size_t count : {33, 20001}) {
            std::string wrong = CheckExactSums(ranks, dtype, op, count);
            if (!wrong.empty()) return wrong;
          }
        }
      }
      return "";
    });
    REQUIRE(complaint == "");
  }
}

}  // namespace
}  // namespace hvd::rt::test
