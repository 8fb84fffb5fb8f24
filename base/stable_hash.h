// SPDX-License-Identifier: Apache-2.0
// A hash that is the same in every process, on every host and in every run (std::hash promises
// none of that): ranks compare it instead of what it stands for. FNV-1a, of bytes or of numbers.
// Not for what somebody may forge.
#pragma once

#include <cstdint>
#include <string_view>

namespace hvd {

class StableHash {
 public:
  StableHash& Add(uint64_t number) {
    value_ = (value_ ^ number) * 0x100000001b3u;
    return *this;
  }
  // Texts that follow one another run together: add what tells them apart.
  StableHash& Add(std::string_view bytes) {
    for (const char each : bytes) Add(uint64_t{static_cast<unsigned char>(each)});
    return *this;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace hvd
