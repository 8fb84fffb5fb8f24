// SPDX-License-Identifier: Apache-2.0
#include "cli/console/word_colors.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

TEST_CASE("an error: whose it is, what is wrong, where, and what to do next") {
  CHECK(ColorWords("hvdrun: rank 1 died\n  pid 7\n    | last words\n  next: look there\n",
                   Tone::kError) ==
        "\033[1;31mhvdrun:\033[0m\033[1m rank 1 died\033[0m\n"
        "  pid 7\n"
        "\033[2m    |\033[0m last words\n"
        "  \033[1;32mnext:\033[0m look there\n");
  CHECK(ColorWords("hvdrun: -H:1:2: wrong\n  a;b\n   ^\n", Tone::kError) ==
        "\033[1;31mhvdrun:\033[0m\033[1m -H:1:2: wrong\033[0m\n  a;b\n   \033[1;31m^\033[0m\n");
}

TEST_CASE("a notice is quieter, and whatever is plain stays so") {
  CHECK(ColorWords("hvdrun: host a: hvdd\n\n \nx", Tone::kNotice) ==
        "\033[1mhvdrun:\033[0m host a: hvdd\n\n \nx");
  CHECK(ColorWords("", Tone::kError).empty());
}

}  // namespace
}  // namespace hvd::cli
