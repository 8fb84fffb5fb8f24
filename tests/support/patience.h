// How long tests wait for what comes soon.
#pragma once

namespace hvd {

// Seconds that may pass before what takes less than `seconds` counts as missing. A sanitizer makes
// a program some ten times slower; promises about time are kept by the build without one
// (HVD_TEST_SLOWNESS comes from CMake).
constexpr double Patient(double seconds) { return HVD_TEST_SLOWNESS * seconds; }
constexpr int PatientMs(int milliseconds) {
  return static_cast<int>(1000 * Patient(milliseconds / 1000.0));
}

}  // namespace hvd
