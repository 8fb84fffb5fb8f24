// victim MODE [arguments]: a worker that behaves in the way of its mode (see victim_modes.cc).
#include <cstdio>

#include "hvd/hvd.hpp"
#include "tests/system/programs/victim_modes.h"

int main(int argc, char** argv) {
  const auto mode = victim::Modes().find(argc > 1 ? argv[1] : "");
  if (mode == victim::Modes().end()) {
    std::fprintf(stderr, "victim: which mode?\n");
    return 2;
  }
  try {
    return mode->second(victim::Arguments(argv + 2, argv + argc));
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "victim: rank %d: %s\n", hvd::rank(), error.what());
    return 1;
  }
}
