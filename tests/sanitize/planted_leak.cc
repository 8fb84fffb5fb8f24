// SPDX-License-Identifier: Apache-2.0
// Loses a block of memory: the leak check that scripts/sanitize relies on must find it.
#include <cstdlib>
#include <memory>

namespace {

// Out of line and storing elsewhere first, so that no optimiser removes the allocation and no
// register still points to it at exit.
int* volatile lost = nullptr;

[[gnu::noinline]] void Lose() {
  for (int i = 0; i < 100; ++i) lost = std::make_unique<int>(i).release();
  lost = nullptr;
}

}  // namespace

int main() {
  Lose();
  return EXIT_SUCCESS;
}
