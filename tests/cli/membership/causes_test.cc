// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/causes.h"

#include <catch2/catch.hpp>

namespace hvd::cli {

using Words = std::vector<std::string>;

TEST_CASE("a cause that says more takes the place of the same in fewer words", "[membership]") {
  Causes causes;
  causes.Add({Cause::kEnd, "rank 1 on h0 exited"});
  causes.Add({Cause::kEnd, "rank 1 on h0 exited with code 3"});
  causes.Add({Cause::kEnd, "rank 1"});  // known
  CHECK(causes.Say() == Words{"rank 1 on h0 exited with code 3"});
}

TEST_CASE("a death takes the place of a word with the same text, and not the reverse",
          "[membership]") {
  Causes causes;
  causes.Add({Cause::kWord, "rank 1 on h0 is gone, says rank 0"});
  causes.Add({Cause::kEnd, "rank 1 on h0 is gone"});
  CHECK(causes.Say() == Words{"rank 1 on h0 is gone"});
  causes.Add({Cause::kWord, "rank 1 on h0 is gone, says rank 2"});
  CHECK(causes.Say() == Words{"rank 1 on h0 is gone"});
}

TEST_CASE("deaths come first, and words are no news behind them", "[membership]") {
  Causes causes;
  causes.Add({Cause::kWord, "no data passes"});
  CHECK(causes.Say() == Words{"no data passes"});
  causes.Add({Cause::kFollows, "rank 2 failed"});
  causes.Add({Cause::kEnd, "rank 1 died"});
  CHECK(causes.Say() == Words{"rank 1 died", "rank 2 failed"});
}

TEST_CASE("causes tell of a host by its whole name", "[membership]") {
  Causes causes;
  causes.Add({Cause::kEnd, "h10 lost"});
  CHECK(causes.Tell("h10"));
  CHECK_FALSE(causes.Tell("h1"));
  causes.Clear();
  CHECK(causes.empty());
}

}  // namespace hvd::cli
