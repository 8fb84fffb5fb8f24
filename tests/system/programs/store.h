// SPDX-License-Identifier: Apache-2.0
// What the parts of the program `store` share.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "hvd/hvd.hpp"

inline constexpr hvd::store::Timeout kNow{0};
inline constexpr hvd::store::Timeout kShort{0.05};
inline constexpr hvd::store::Timeout kLong{120};  // far more than any of it takes

inline int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}
inline int Rank() { return FromEnvironment("RANK", 0); }
inline int Size() { return FromEnvironment("WORLD_SIZE", 1); }

inline void Check(bool right, const std::string& what) {
  if (right) return;
  std::fprintf(stderr, "rank %d: wrong: %s\n", Rank(), what.c_str());
  std::_Exit(1);
}

// The call must end with this code, and its text must hold these words.
inline void MustFail(hvd_status_t code, const std::function<void()>& call,
                     const std::string& words) {
  try {
    call();
  } catch (const hvd::Error& error) {
    Check(error.code() == code,
          std::string("not ") + hvd_status_name(error.code()) + ": " + error.what());
    const bool said = std::string(error.what()).find(words) != std::string::npos;
    return Check(said, "it does not say '" + words + "': " + error.what());
  }
  Check(false, "what must fail with '" + words + "' did not");
}

// Returns when all ranks have come here; makes two keys.
inline void Meet(const std::string& name) {
  if (hvd::store::add(name + " (came)", 1) == Size()) hvd::store::set(name + " (all)", "");
  hvd::store::get(name + " (all)", kLong);
}

// store_limits.cc
void Limits();
void Full();
void ManyCalls();
void LargeToAnother();
// store_ends.cc
void Fork();
void Signal();
void Victim();
void VictimJoined();
