// SPDX-License-Identifier: Apache-2.0
// How long tests wait for what comes soon.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace hvd {

// How much longer everything may take than on an idle machine: twice the processes that want a core
// for each core that there is, now or lately. At least 1. tests/system/world.py counts the same
// way.
inline double Crowd() {
  constexpr double kMost = 20;
  double wanted = 0, running = 0;
  getloadavg(&wanted, 1);
  std::ifstream stat("/proc/stat");
  for (std::string word; stat >> word;) {
    if (word == "procs_running" && stat >> running) wanted = std::max(wanted, running);
  }
  return std::clamp(2 * wanted / static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)), 1.0, kMost);
}

// Seconds that may pass before what takes less than `seconds` counts as missing. A sanitizer makes
// a program some ten times slower; promises about time are kept by the build without one
// (HVD_TEST_SLOWNESS comes from CMake), on a machine of its own.
inline double Patient(double seconds) { return HVD_TEST_SLOWNESS * Crowd() * seconds; }
inline int PatientMs(int milliseconds) {
  return static_cast<int>(1000 * Patient(milliseconds / 1000.0));
}

}  // namespace hvd
