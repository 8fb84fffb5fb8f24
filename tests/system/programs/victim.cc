// SPDX-License-Identifier: Apache-2.0
// victim MODE [arguments]: a worker that behaves in the way of its mode (see victim_modes.h).
#include <cstdio>

#include "hvd/hvd.hpp"
#include "tests/system/programs/victim_modes.h"

int main(int argc, char** argv) {
  try {
    for (const auto* modes :
         {&victim::StayingModes(), &victim::LeavingModes(), &victim::RefusedModes()}) {
      const auto mode = modes->find(argc > 1 ? argv[1] : "");
      if (mode != modes->end()) return mode->second(victim::Arguments(argv + 2, argv + argc));
    }
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "victim: rank %d: %s\n", hvd::rank(), error.what());
    return 1;
  }
  std::fprintf(stderr, "victim: which mode?\n");
  return 2;
}
