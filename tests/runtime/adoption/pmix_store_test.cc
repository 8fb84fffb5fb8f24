// SPDX-License-Identifier: Apache-2.0
// PMIx where it is not; launchers that have it are tested as a whole.
#include "runtime/adoption/pmix_store.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

namespace hvd::rt {
namespace {

bool Holds(const absl::Status& status, const std::string& words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

bool HasPath(const PmixPlaces& places, const std::string& path) {
  return std::find(places.beside.begin(), places.beside.end(), path) != places.beside.end();
}

TEST_CASE("PMIx that is not there is said by its name, and what to do") {
  PmixPlaces places;
  places.system = "libno-such-pmix.so.2";
  const auto store = OpenPmixStore(0, 2, places);
  CHECK(absl::IsNotFound(store.status()));
  CHECK(Holds(store.status(), "libno-such-pmix.so.2, by which"));
  CHECK(Holds(store.status(), "next: install PMIx"));
}

TEST_CASE("a library that is no PMIx is too old for one, and the missing functions are named") {
  PmixPlaces places;
  places.system = "libc.so.6";
  const auto store = OpenPmixStore(0, 2, places);
  CHECK(absl::IsUnimplemented(store.status()));
  CHECK(Holds(store.status(), "it has no PMIx_Init, "));
}

TEST_CASE("PMIx is looked for where the launcher says that it lies") {
  const PmixPlaces places = FindPmixPlaces([](const char* name) -> const char* {
    return std::strcmp(name, "OPAL_PREFIX") == 0 ? "/opt/mpi" : nullptr;
  });
  REQUIRE(places.beside.size() >= 2);
  CHECK(places.beside[0] == "/opt/mpi/lib/libpmix.so.2");
  CHECK(places.beside[1] == "/opt/mpi/lib/openmpi/libpmix.so.2");
  CHECK(places.system == "libpmix.so.2");
}

TEST_CASE("variables that are empty lead nowhere") {
  const PmixPlaces places = FindPmixPlaces([](const char*) { return ""; });
  CHECK_FALSE(HasPath(places, "/lib/libpmix.so.2"));
}

TEST_CASE("options carry PMIx's names, and end in zeros") {
  const PmixInfo option = PmixOption("pmix.timeout", kPmixInt);
  CHECK(std::string(option.key) == "pmix.timeout");
  CHECK(option.key[sizeof(option.key) - 1] == '\0');
  CHECK(option.flags == 0);
  CHECK(option.value.type == 6);
}

}  // namespace
}  // namespace hvd::rt
