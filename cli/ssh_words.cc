#include "cli/ssh_words.h"

#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

// Reads one word at `at`, which is no blank. False: a quote is not closed, or a backslash is last.
bool ReadWord(std::string_view line, size_t* at, std::string* word) {
  char quote = 0;
  for (; *at < line.size(); ++*at) {
    const char c = line[*at];
    if (quote == '\'') {
      if (c == '\'') {
        quote = 0;
      } else {
        *word += c;
      }
    } else if (c == '\\') {
      if (++*at == line.size()) return false;
      const char next = line[*at];
      const bool kept = quote == '"' && std::string_view("\"\\$`").find(next) == line.npos;
      if (kept) *word += '\\';
      *word += next;
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      return true;
    } else {
      *word += c;
    }
  }
  return quote == 0;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitShellWords(std::string_view line) {
  std::vector<std::string> words;
  for (size_t at = 0;;) {
    at = line.find_first_not_of(" \t\n", at);
    if (at == line.npos) return words;
    std::string word;
    if (!ReadWord(line, &at, &word)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unbalanced quote or trailing backslash in: ", std::string(line)));
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

}  // namespace hvd
