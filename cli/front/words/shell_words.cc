// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/shell_words.h"

#include "absl/strings/str_cat.h"
#include "base/source_error.h"

namespace hvd::cli {
namespace {

// Reads one word at `at`, which is no blank. Returns what is not finished at the line's end: the
// place of a quote that is not closed, or of a backslash with nothing behind it; npos: all is.
size_t ReadWord(std::string_view line, size_t* at, std::string* word) {
  char quote = 0;
  size_t opened = line.npos;
  for (; *at < line.size(); ++*at) {
    const char c = line[*at];
    if (quote == '\'') {
      if (c == '\'') {
        quote = 0;
      } else {
        *word += c;
      }
    } else if (c == '\\') {
      if (++*at == line.size()) return quote == 0 ? *at - 1 : opened;
      const char next = line[*at];
      const bool kept = quote == '"' && std::string_view("\"\\$`").find(next) == line.npos;
      if (kept) *word += '\\';
      *word += next;
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      opened = *at;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      break;
    } else {
      *word += c;
    }
  }
  return quote == 0 ? line.npos : opened;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitShellWords(std::string_view line) {
  std::vector<std::string> words;
  for (size_t at = 0;;) {
    at = line.find_first_not_of(" \t\n", at);
    if (at == line.npos) return words;
    std::string word;
    const size_t unfinished = ReadWord(line, &at, &word);
    if (unfinished != line.npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(line[unfinished] == '\\' ? "nothing stands behind this backslash\n"
                                                : "this quote is never closed\n",
                       ShowWithCaret({line.data(), line.size()}, unfinished)));
    }
    words.push_back(std::move(word));
  }
}

bool QuotesInAnyShell(std::string_view word) {
  return word.find_first_of("\\!\n") == word.npos && word.find('\0') == word.npos;
}

std::string QuoteForAnyShell(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\"'\"'";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string AsShellWord(std::string_view word) {
  const bool plain =
      !word.empty() && word.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                           "@%+=:,./_-") == word.npos;
  return plain ? std::string(word) : QuoteForAnyShell(word);
}

}  // namespace hvd::cli
