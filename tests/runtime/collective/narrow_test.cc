// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/narrow.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/runtime/collective/numbers.h"

namespace hvd::rt::test {
namespace {

uint16_t ToSmall(hvd_dtype_t dtype, double value) {
  return dtype == HVD_FLOAT16 ? EncodeSmall(value, 5, 10) : EncodeSmall(value, 8, 7);
}

TEST_CASE("every 16-bit number comes back the same") {
  for (const hvd_dtype_t narrow : {HVD_FLOAT16, HVD_BFLOAT16}) {
    std::vector<uint16_t> all(65536), back(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    std::vector<float> wide(all.size());
    Widen({HVD_FLOAT32, narrow}, all.data(), wide.data(), all.size());
    Narrow({HVD_FLOAT32, narrow}, wide.data(), back.data(), all.size());
    size_t wrong = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const double wanted = Decode(narrow, &all[i]);
      const bool is_nan = std::isnan(wanted);
      if (is_nan != std::isnan(wide[i]) || (!is_nan && wide[i] != wanted)) ++wrong;
      if (is_nan ? !std::isnan(Decode(narrow, &back[i])) : back[i] != all[i]) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("floats are rounded to nearest even") {
  for (const hvd_dtype_t narrow : {HVD_FLOAT16, HVD_BFLOAT16}) {
    std::vector<float> wide = {0.0f,       -0.0f,   INFINITY, -INFINITY,      65504,
                               65519.996f, 65520,   1e-7f,    2.9802322e-08f, 2.9802326e-08f,
                               6.1e-05f,   3.4e38f, 1e-45f};
    uint32_t bits = 1;
    for (int i = 0; i < 200000; ++i) {
      bits = bits * 1664525 + 1013904223;
      const float value = std::bit_cast<float>(bits);
      if (!std::isnan(value)) wide.push_back(value);
      // Halfway between two neighbours, and beside that.
      wide.push_back(std::bit_cast<float>((bits & 0xbfffe000) | 0x1000));
      wide.push_back(std::bit_cast<float>((bits & 0xbfff0000) | 0x8000));
    }
    wide.erase(std::remove_if(wide.begin(), wide.end(), [](float x) { return std::isnan(x); }),
               wide.end());
    std::vector<uint16_t> got(wide.size());
    Narrow({HVD_FLOAT32, narrow}, wide.data(), got.data(), wide.size());
    size_t wrong = 0;
    for (size_t i = 0; i < wide.size(); ++i) wrong += got[i] != ToSmall(narrow, wide[i]);
    CHECK(wrong == 0);
    const std::vector<double> doubles = {1.5, -3.25, 1e300};
    Narrow({HVD_FLOAT64, narrow}, doubles.data(), got.data(), 3);
    std::vector<double> back(3);
    Widen({HVD_FLOAT64, narrow}, got.data(), back.data(), 3);
    CHECK(back == std::vector<double>{1.5, -3.25, INFINITY});
  }
}

}  // namespace
}  // namespace hvd::rt::test
