// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/shell_words.h"

#include <stdio.h>

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("words are split as the shell does") {
  CHECK(*SplitShellWords("") == Words{});
  CHECK(*SplitShellWords("  ssh   -p 22\t") == Words{"ssh", "-p", "22"});
  CHECK(*SplitShellWords("a 'b c' \"d e\"f") == Words{"a", "b c", "d ef"});
  CHECK(*SplitShellWords(R"(a\ b "c\"d" "e\f" '\')") == Words{"a b", "c\"d", "e\\f", "\\"});
  CHECK(*SplitShellWords("'' \"\"") == Words{"", ""});
  CHECK_FALSE(SplitShellWords("a 'b").ok());
  CHECK_FALSE(SplitShellWords("a \"b").ok());
  CHECK(SplitShellWords("a \\").status().message() ==
        "nothing stands behind this backslash\n  a \\\n    ^");
  CHECK(SplitShellWords("a 'b' \"c \\").status().message() ==
        "this quote is never closed\n  a 'b' \"c \\\n        ^");
}

TEST_CASE("a quoted word comes back from the shell") {
  for (const std::string word : {"", "plain", "a b", "it's", "''", "$HOME `x` \"q\" *", "-n"}) {
    const std::string command = "printf %s " + QuoteForAnyShell(word);
    FILE* pipe = popen(command.c_str(), "r");
    char text[100] = {};
    const size_t size = fread(text, 1, sizeof text, pipe);
    pclose(pipe);
    CHECK(std::string(text, size) == word);
    CHECK(SplitShellWords(QuoteForAnyShell(word))->front() == word);
  }
}

TEST_CASE("what fish and csh read otherwise is known") {
  CHECK(QuotesInAnyShell("/opt/my hvd/it's"));
  CHECK_FALSE(QuotesInAnyShell("a\\b"));
  CHECK_FALSE(QuotesInAnyShell("a!b"));
  CHECK_FALSE(QuotesInAnyShell("a\nb"));
}

}  // namespace
}  // namespace hvd::cli
