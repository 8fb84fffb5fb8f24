// How long tests wait for what comes soon.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

namespace hvd {

// How many processes want a core, for each core that there is. At least 1.
inline double Crowd() {
  double load = 0;
  getloadavg(&load, 1);
  return std::max(1.0, load / static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
}

// Seconds that may pass before what takes less than `seconds` counts as missing. A sanitizer makes
// a program some ten times slower; promises about time are kept by the build without one
// (HVD_TEST_SLOWNESS comes from CMake), on a machine of its own.
inline double Patient(double seconds) { return HVD_TEST_SLOWNESS * Crowd() * seconds; }
inline int PatientMs(int milliseconds) {
  return static_cast<int>(1000 * Patient(milliseconds / 1000.0));
}

}  // namespace hvd
