// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/parting.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

using Go = Parting::Go;

TEST_CASE("the last word comes once, when the stop is over and every end is told") {
  Parting parting;
  CHECK_FALSE(parting.TakeLastWord(std::nullopt, true, false));
  CHECK_FALSE(parting.TakeLastWord(0, false, false));
  CHECK_FALSE(parting.TakeLastWord(0, true, true));  // a file is not written yet
  CHECK(parting.TakeLastWord(0, true, false));
  CHECK(parting.told());
  CHECK_FALSE(parting.TakeLastWord(0, true, false));
}

TEST_CASE("what cannot be killed is not waited for, nor are its files") {
  Parting parting;
  CHECK(parting.TakeLastWord(2, false, true));
}

TEST_CASE("hvdd goes at once behind a driver that is gone, and soon behind a silent one") {
  Parting parting;
  CHECK(parting.MayGo(false) == Go::kNotYet);
  CHECK(parting.Silence());
  CHECK_FALSE(parting.Silence());
  CHECK(parting.MayGo(false) == Go::kSoon);
  CHECK(parting.MayGo(true) == Go::kNotYet);  // its last word has not been said
  parting.TakeLastWord(0, true, false);
  CHECK(parting.MayGo(true) == Go::kSoon);
  CHECK(parting.LoseDriver());
  CHECK(parting.MayGo(true) == Go::kNow);
}

TEST_CASE("a driver that is gone cannot fall silent") {
  Parting parting;
  CHECK(parting.LoseDriver());
  CHECK_FALSE(parting.LoseDriver());
  CHECK_FALSE(parting.Silence());
  CHECK(parting.without_driver());
}

TEST_CASE("a signal is news once, and so is a wish to drain") {
  Parting parting;
  CHECK(parting.AskToDrain());
  CHECK_FALSE(parting.AskToDrain());
  CHECK(parting.Leave());
  CHECK_FALSE(parting.Leave());
  CHECK(parting.MayGo(false) == Go::kSoon);
}

}  // namespace
}  // namespace hvd::daemon
