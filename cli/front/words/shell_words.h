// SPDX-License-Identifier: Apache-2.0
// Words and quotes of remote shells. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hvd::cli {

// Splits a command line as /bin/sh does: blanks, '…', "…", backslash; nothing is expanded.
absl::StatusOr<std::vector<std::string>> SplitShellWords(std::string_view line);

// Whether QuoteForAnyShell can write `word`: `\`, `!` and newlines mean something else in the
// single quotes of fish and csh.
bool QuotesInAnyShell(std::string_view word);

// `word` in single quotes that sh, bash, zsh, csh, tcsh and fish read alike.
std::string QuoteForAnyShell(std::string_view word);

// `word` as a person writes it: in quotes where it needs them.
std::string AsShellWord(std::string_view word);

}  // namespace hvd::cli
