// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/term_sources.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

TEST_CASE("a manager signals console, driver and spawner at once: one stop, in any order") {
  TermSources driver_first;
  CHECK(driver_first.ByHelper(10));
  CHECK_FALSE(driver_first.ByHelper(10.1));
  CHECK_FALSE(driver_first.ByConsole(10.2));
  TermSources console_first;
  CHECK(console_first.ByConsole(10));
  CHECK_FALSE(console_first.ByHelper(10.1));
  CHECK_FALSE(console_first.ByHelper(10.9));
}

TEST_CASE("a person who signals the console again is in a hurry") {
  TermSources person;
  CHECK(person.ByConsole(10));
  CHECK(person.ByConsole(10.1));
  TermSources after_manager;
  CHECK(after_manager.ByHelper(10));
  CHECK_FALSE(after_manager.ByConsole(10.1));
  CHECK(after_manager.ByConsole(10.2));
}

TEST_CASE("a helper's TERM that comes later is another one") {
  TermSources later;
  CHECK(later.ByConsole(10));
  CHECK(later.ByHelper(11.5));
  CHECK(later.ByConsole(13));
}

}  // namespace
}  // namespace hvd::cli
