// SPDX-License-Identifier: Apache-2.0
// The floats of 8 bits and float64. Encode rounds to nearest even; REQUIRES: FloatRules.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace hvd::rt {

struct E4m3fn {
  static constexpr int kExponentBits = 4;
  static constexpr int kFractionBits = 3;
  static constexpr uint8_t kLargest = 0x7e;   // 448: the largest exponent has numbers, too
  static constexpr uint8_t kOverflow = 0x7e;  // there is no infinity; torch does the same
};

struct E5m2 {
  static constexpr int kExponentBits = 5;
  static constexpr int kFractionBits = 2;
  static constexpr uint8_t kLargest = 0x7b;   // 57344
  static constexpr uint8_t kOverflow = 0x7c;  // infinity
};

template <class Format>
class Float8 {
 public:
  static double Decode(uint8_t bits) { return kDecoded[bits]; }

  static uint8_t Encode(double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    const uint64_t size = bits & ~kSign;
    if (size > kInfinity) return kNan;
    const auto sign = static_cast<uint8_t>(bits >> 56 & 0x80);
    const uint64_t rounded = size < kSmallestNormal ? RoundSubnormal(size) : RoundNormal(size);
    return sign | (rounded > Format::kLargest ? Format::kOverflow : static_cast<uint8_t>(rounded));
  }

 private:
  static constexpr uint64_t kSign = uint64_t{1} << 63;
  static constexpr uint64_t kInfinity = uint64_t{0x7ff} << 52;
  static constexpr uint8_t kNan = 0x7f;
  static constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;
  static constexpr int kShift = 52 - Format::kFractionBits;
  static constexpr uint64_t kSmallestNormal = static_cast<uint64_t>(1023 + 1 - kBias) << 52;
  // A number whose last place is as large as the smallest subnormal.
  static constexpr uint64_t kSubnormalUnit =
      kSmallestNormal + (static_cast<uint64_t>(kShift) << 52);

  static uint64_t RoundNormal(uint64_t size) {
    const uint64_t rebased = size - (static_cast<uint64_t>(1023 - kBias) << 52);
    const uint64_t half = uint64_t{1} << (kShift - 1);
    return (rebased + half - 1 + (rebased >> kShift & 1)) >> kShift;
  }
  static uint64_t RoundSubnormal(uint64_t size) {
    const double sum = std::bit_cast<double>(size) + std::bit_cast<double>(kSubnormalUnit);
    return std::bit_cast<uint64_t>(sum) - kSubnormalUnit;
  }

  static constexpr double DecodeOne(uint8_t bits) {
    const auto sign = static_cast<uint64_t>(bits & 0x80) << 56;
    const uint64_t size = bits & 0x7f;
    uint64_t decoded = (size << kShift) + (static_cast<uint64_t>(1023 - kBias) << 52);
    if (size > Format::kLargest) {
      decoded = size == Format::kOverflow && size != kNan ? kInfinity : uint64_t{0x7ff8} << 48;
    } else if (size >> Format::kFractionBits == 0) {
      const double smallest = std::bit_cast<double>(
          static_cast<uint64_t>(1023 + 1 - kBias - Format::kFractionBits) << 52);
      decoded = std::bit_cast<uint64_t>(static_cast<double>(size) * smallest);
    }
    return std::bit_cast<double>(decoded | sign);
  }
  static constexpr std::array<double, 256> DecodeAll() {
    std::array<double, 256> all{};
    for (int bits = 0; bits < 256; ++bits) all[bits] = DecodeOne(static_cast<uint8_t>(bits));
    return all;
  }
  static constexpr std::array<double, 256> kDecoded = DecodeAll();
};

}  // namespace hvd::rt
