// SPDX-License-Identifier: Apache-2.0
// Command lines for tests of the options, each with a program behind them.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cli/front/words/options.h"

namespace hvd::cli {

using Words = std::vector<std::string>;

// They must be fine.
inline TypedOptions Parse(Words words) {
  words.push_back("prog");
  const auto typed = ParseOptions(words);
  INFO(typed.status().message());
  REQUIRE(typed.ok());
  CHECK(typed->run.command == Words{"prog"});
  return *typed;
}

// Returns what is said against the words; empty: nothing is.
inline std::string Refusal(Words words) {
  words.push_back("prog");
  return std::string(ParseOptions(words).status().message());
}

}  // namespace hvd::cli
