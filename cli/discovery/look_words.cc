// SPDX-License-Identifier: Apache-2.0
#include "cli/discovery/look_words.h"

#include <sys/wait.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/process_end.h"
#include "base/source_error.h"

namespace hvd::cli {
namespace {

constexpr size_t kShownLines = 5;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

std::string EndOf(const FailedLook& look) {
  switch (look.end) {
    case LookEnd::kEnded:
      return DescribeEnd(look.wait_status);
    case LookEnd::kTooLong:
      return absl::StrCat("did not end within ", look.bound_s, " s");
    case LookEnd::kTooMuch:
      return absl::StrCat("printed more than ", kMaxLookText >> 20, " MiB");
    case LookEnd::kNotMade:
      return "could not be started";
  }
  return "";
}

// The last lines, each behind a mark.
std::string LastWords(const std::string& words) {
  const std::vector<std::string> lines = absl::StrSplit(words, '\n', absl::SkipEmpty());
  std::string text;
  for (size_t at = lines.size() - std::min(lines.size(), kShownLines); at < lines.size(); ++at) {
    absl::StrAppend(&text, "\n  | ", Printable(lines[at]));
  }
  return text;
}

// Whether the word that the script's line begins with has a slash: then it is a file, not a program
// that PATH leads to.
bool IsPath(const std::string& script) {
  const size_t begin = script.find_first_not_of(" \t");
  if (begin == std::string::npos) return false;
  return script.substr(begin, script.find_first_of(" \t", begin) - begin).find('/') !=
         std::string::npos;
}

std::string NextStep(const std::string& script, const FailedLook& look) {
  const bool exited = look.end == LookEnd::kEnded && WIFEXITED(look.wait_status);
  const int code = exited ? WEXITSTATUS(look.wait_status) : 0;
  if (code == kNotExecutable) return "\n  may it be executed (chmod +x)?";
  if (code == kNotFound && IsPath(script)) return "\n  is it on the host that hvdrun runs on?";
  if (code == kNotFound) return "\n  a script in this directory is called ./NAME";
  return "";
}

}  // namespace

std::string ExplainScript(const std::string& script, const FailedLook& look) {
  return absl::StrCat("the --host-discovery-script ", Quoted(script), " ", EndOf(look),
                      LastWords(look.last_words), NextStep(script, look));
}

std::string ExplainManager(const std::string& manager, const FailedLook& look) {
  return absl::StrCat("the nodes of ", Printable(manager), " are not known: asking for them ",
                      EndOf(look), LastWords(look.last_words));
}

std::string ExplainHostfile(const std::string& path, const FailedLook& look) {
  return absl::StrCat("the hostfile ", Printable(path), " cannot be read: cat ", EndOf(look),
                      LastWords(look.last_words));
}

}  // namespace hvd::cli
