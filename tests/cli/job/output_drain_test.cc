// SPDX-License-Identifier: Apache-2.0
#include "cli/job/output_drain.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace hvd::cli {
namespace {

constexpr double kPatienceS = 2;

TEST_CASE("output is at its end with the last stream of the last rank that was started") {
  OutputDrain drain(3);
  CHECK(drain.Done(kPatienceS, 0));  // nothing has been started
  drain.Started(0);
  drain.Started(1);
  drain.Started(1);
  drain.Moved(0, true, 1);
  drain.Moved(0, true, 1);
  drain.Moved(0, true, 1);  // a third end counts for nobody
  CHECK_FALSE(drain.Done(kPatienceS, 1));
  drain.Moved(1, true, 1);
  CHECK_FALSE(drain.Done(kPatienceS, 1));
  drain.Moved(1, true, 1);
  CHECK(drain.Done(kPatienceS, 1));
  drain.Moved(-1, true, 1);  // of a rank that is none
  drain.Moved(3, true, 1);
  CHECK(drain.Done(kPatienceS, 1));
}

TEST_CASE("a stream may end before its rank is known to have started") {
  OutputDrain drain(1);
  drain.Moved(0, true, 1);
  drain.Moved(0, true, 1);
  drain.Started(0);
  CHECK(drain.Done(kPatienceS, 1));
}

TEST_CASE("what a lost host has not sent is not waited for") {
  OutputDrain drain(2);
  drain.Started(0);
  drain.Moved(0, true, 1);
  drain.Lost(0);
  CHECK(drain.Done(kPatienceS, 1));
  drain.Lost(1);
  drain.Started(1);
  CHECK(drain.Done(kPatienceS, 1));
}

TEST_CASE("when nothing comes for a while it is over, unless the console takes none") {
  OutputDrain drain(1);
  drain.Started(0);
  drain.Moved(0, false, 10);
  CHECK_FALSE(drain.Done(kPatienceS, 11.9));
  CHECK(drain.NextLook(kPatienceS) == 12);
  CHECK(drain.Done(kPatienceS, 12));
  drain.MayFollow(11);
  CHECK_FALSE(drain.Done(kPatienceS, 12));
  drain.Pause(true, 12);
  CHECK_FALSE(drain.Done(kPatienceS, 100));
  CHECK(std::isinf(drain.NextLook(kPatienceS)));
  drain.Pause(false, 100);
  CHECK_FALSE(drain.Done(kPatienceS, 101));
  CHECK(drain.Done(kPatienceS, 102));
}

}  // namespace
}  // namespace hvd::cli
