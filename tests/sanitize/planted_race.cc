// SPDX-License-Identifier: Apache-2.0
// Two threads count in one plain word: the race check that scripts/sanitize relies on must find it.
#include <cstdlib>
#include <thread>

namespace {

void CountTo(int end, volatile int* word) {
  for (int i = 0; i < end; ++i) *word = *word + 1;
}

}  // namespace

int main() {
  volatile int word = 0;
  std::thread one(CountTo, 100000, &word);
  std::thread other(CountTo, 100000, &word);
  one.join();
  other.join();
  return EXIT_SUCCESS;
}
