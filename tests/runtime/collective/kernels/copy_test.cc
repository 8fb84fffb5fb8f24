// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/kernels/copy.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace hvd::rt;

namespace {

// A destination with bytes before and behind that no copy may touch.
class Framed {
 public:
  Framed(size_t offset, size_t bytes)
      : at_(kFrame + offset), bytes_(bytes), all_(at_ + bytes + kFrame, kUntouched) {}

  void* data() { return all_.data() + at_; }
  bool Holds(const unsigned char* expected) const {
    for (size_t i = 0; i < all_.size(); ++i) {
      const bool inside = i >= at_ && i < at_ + bytes_;
      if (all_[i] != (inside ? expected[i - at_] : kUntouched)) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kFrame = 128;
  static constexpr unsigned char kUntouched = 255;
  size_t at_;
  size_t bytes_;
  std::vector<unsigned char> all_;
};

std::vector<unsigned char> Numbers(size_t count) {
  std::vector<unsigned char> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<unsigned char>(i * 7 % 251);
  return numbers;
}

}  // namespace

TEST_CASE("Copy: every level copies all bytes and no others, wherever they lie", "[copy]") {
  const auto level = GENERATE(KernelLevel::kBaseline, KernelLevel::kAvx2, KernelLevel::kAvx512);
  if (level > BestKernelLevel()) return;
  CAPTURE(KernelLevelName(level));
  const auto numbers = Numbers(5000);
  for (size_t bytes : {1024, 1025, 1087, 1279, 1280, 1281, 4096, 4500}) {
    for (size_t to : {0, 1, 15, 16, 31, 33, 63}) {
      for (size_t from : {0, 1, 16, 63}) {
        Framed framed(to, bytes);
        FindCopyKernel(level)(framed.data(), numbers.data() + from, bytes);
        CAPTURE(bytes, to, from);
        REQUIRE(framed.Holds(numbers.data() + from));
      }
    }
  }
}

TEST_CASE("Copy: of every length", "[copy]") {
  const auto numbers = Numbers(3000);
  for (size_t bytes = 0; bytes < 2600; ++bytes) {
    Framed framed(bytes % 67, bytes);
    CopyBytes(framed.data(), numbers.data() + bytes % 3, bytes);
    CAPTURE(bytes);
    REQUIRE(framed.Holds(numbers.data() + bytes % 3));
  }
}

TEST_CASE("Copy: nothing from nowhere", "[copy]") { CopyBytes(nullptr, nullptr, 0); }
