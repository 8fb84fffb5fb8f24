// SPDX-License-Identifier: Apache-2.0
// The handwritten digits, read into memory and cut into a part to train on and a part to test on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace digits {

inline constexpr size_t kPixels = 64;  // 8 × 8
inline constexpr size_t kClasses = 10;

struct Image {
  float pixels[kPixels];  // 0 to 1
  int label;              // 0 to 9
};

struct Digits {
  std::vector<Image> train;  // four fifths
  std::vector<Image> test;
};

// The file could not be read or is not what it should be; what() says where.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Reads CSV, gzipped or plain, and cuts it in an order that depends on `seed` alone.
Digits Read(const std::string& path, uint64_t seed);

// Where the data lies when the user does not say: in the source tree or beside an installed
// program.
std::string DefaultPath();

// A permutation of 0 … count-1 that depends on `seed` alone, on any machine.
std::vector<uint32_t> Shuffled(size_t count, uint64_t seed);

}  // namespace digits
