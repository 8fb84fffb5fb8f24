// SPDX-License-Identifier: Apache-2.0
// Adds past the end of int: the check for undefined behaviour must end this program.
#include <climits>
#include <cstdlib>

int main(int argc, char**) {
  volatile int big = INT_MAX;
  volatile int sum = big + argc;
  return sum == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
