// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/short_slices.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

namespace hvd::rt {
namespace {

TEST_CASE("a thread may ask for short slices; its share of the core stays") {
  std::thread([] {
    REQUIRE(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 7) == 0);
    CHECK(AskForShortSlices());
    CHECK(getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))) == 7);
  }).join();
}

}  // namespace
}  // namespace hvd::rt
