// SPDX-License-Identifier: Apache-2.0
#include "cli/console/word_colors.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hvd::cli {
namespace {

constexpr absl::string_view kBold = "\033[1m";
constexpr absl::string_view kDim = "\033[2m";
constexpr absl::string_view kRed = "\033[1;31m";
constexpr absl::string_view kGreen = "\033[1;32m";
constexpr absl::string_view kOff = "\033[0m";

constexpr absl::string_view kSpeaker = "hvdrun:";
constexpr absl::string_view kNext = "next:";
constexpr absl::string_view kQuote = "    |";

std::string Colored(absl::string_view color, absl::string_view text) {
  return text.empty() ? "" : absl::StrCat(color, text, kOff);
}

std::string ColorLine(absl::string_view line, Tone tone) {
  const bool error = tone == Tone::kError;
  if (absl::StartsWith(line, kSpeaker)) {
    const absl::string_view said = line.substr(kSpeaker.size());
    return absl::StrCat(Colored(error ? kRed : kBold, kSpeaker),
                        error ? Colored(kBold, said) : std::string(said));
  }
  if (absl::StartsWith(line, kQuote)) {
    return absl::StrCat(Colored(kDim, kQuote), line.substr(kQuote.size()));
  }
  const size_t indent = line.find_first_not_of(" \t");
  if (indent == line.npos) return std::string(line);
  const absl::string_view word = line.substr(indent);
  if (absl::StartsWith(word, kNext)) {
    return absl::StrCat(line.substr(0, indent), Colored(kGreen, kNext), word.substr(kNext.size()));
  }
  if (word == "^") return absl::StrCat(line.substr(0, indent), Colored(kRed, word));
  return std::string(line);
}

}  // namespace

std::string ColorWords(std::string_view lines, Tone tone) {
  absl::string_view rest(lines.data(), lines.size());
  std::string colored;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    absl::StrAppend(&colored, ColorLine(rest.substr(0, end), tone), end == rest.npos ? "" : "\n");
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  return colored;
}

}  // namespace hvd::cli
