// SPDX-License-Identifier: Apache-2.0
// The line that a person sees while hosts start: who is waited for, and since when. Pure; the
// driver knows the words, the console draws them and counts the seconds.
#pragma once

#include <string>
#include <string_view>

#include "cli/report/verdict.h"

namespace hvd::cli {

// A start that is over before this has no such line.
inline constexpr double kStatusAfterS = 0.5;

// "starting 2/3 hosts\nwaiting for host1"; empty: all ranks have started, or hosts are gone.
std::string StartWords(const JobFacts& facts);

// "starting 2/3 hosts · 3.1 s · waiting for host1", within so many columns.
std::string StatusLine(std::string_view start_words, double seconds, int columns);

}  // namespace hvd::cli
