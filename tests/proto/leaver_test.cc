#include "proto/leaver.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

TEST_CASE("only libhvd's own words name a rank that has left") {
  CHECK(LeaverIn("rank 12 has left the job (hvd_shutdown) while other ranks wait for it in 'g'") ==
        12);
  for (const char* other :
       {"", "rank 1 on host1 has left the job", "rank 1 has left the job", "rank 1",
        "rank x has left the job (hvd_shutdown)", "rank 1 2 has left the job (hvd_shutdown)",
        "a rank 1 has left the job (hvd_shutdown)", "rank 1 exited with code 3"}) {
    CAPTURE(other);
    CHECK(LeaverIn(other) == -1);
  }
}

}  // namespace
}  // namespace hvd
