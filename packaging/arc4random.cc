// SPDX-License-Identifier: Apache-2.0
// For programs that hold the C++ library inside (HVD_STATIC_RUNTIME) and are to run with C
// libraries before 2.36: Debian 12's libstdc++ takes its random numbers from arc4random, which came
// with that one.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

extern "C" uint32_t arc4random() noexcept {
  uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) abort();  // never, for so few bytes
  return number;
}
