// SPDX-License-Identifier: Apache-2.0
#include "cli/front/python_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "base/process_end.h"
#include "cli/front/child_answer.h"

namespace hvd::cli {
namespace {

constexpr const char* kMark = "hvd-frameworks\t";
constexpr const char* kLast = "hvd-frameworks\tend\n";
constexpr size_t kLongestWords = 300;
// The file is no module of its folder's, whose modules have names of others (torch, jax), and the
// working directory's are none of Python's.
constexpr const char* kRunFile =
    "import sys\n"
    "if sys.version_info < (3, 8): sys.exit('Python ' + sys.version.split()[0] + ' is too old')\n"
    "sys.path[:] = filter(None, sys.path)\n"
    "import runpy\n"
    "runpy.run_path(sys.argv.pop(1), run_name='__main__')\n";

std::string Shown(absl::string_view words) {
  return Printable(std::string_view(words.data(), words.size()), kLongestWords);
}

[[noreturn]] void BecomePython(const PythonQuestion& question, int fd) {
  const std::string file = question.package + "/_frameworks.py";
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(fd, STDOUT_FILENO);
  dup2(fd, STDERR_FILENO);
  execlp(question.python.c_str(), question.python.c_str(), "-c", kRunFile, file.c_str(),
         question.libraries.c_str(), nullptr);
  dprintf(fd, "%spython\t\t%s cannot be executed: %s\n%s", kMark, question.python.c_str(),
          strerror(errno), kLast);
  _exit(1);
}

// The last line that says anything.
std::string LastWords(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  return lines.empty() ? "" : Shown(absl::StripAsciiWhitespace(lines.back()));
}

std::string WhyNoAnswer(const PythonQuestion& question, const ChildAnswer& answer) {
  const std::string words = LastWords(answer.text);
  const std::string what = !answer.problem.empty()   ? answer.problem
                           : answer.wait_status == 0 ? "says nothing of frameworks"
                                                     : DescribeEnd(answer.wait_status);
  return absl::StrCat(Shown(question.python), " ", what, words.empty() ? "" : ": ", words);
}

std::string Field(const std::vector<std::string>& fields, size_t index) {
  return index < fields.size() ? Shown(fields[index]) : "";
}

}  // namespace

std::string FindPython(const std::vector<std::string>& environment) {
  std::string search;
  for (absl::string_view entry : environment) {
    if (absl::ConsumePrefix(&entry, "HVD_PYTHON=") && !entry.empty()) return std::string(entry);
    if (absl::ConsumePrefix(&entry, "PATH=")) search = std::string(entry);
  }
  for (const absl::string_view folder : absl::StrSplit(search, ':')) {
    std::string path = absl::StrCat(folder.empty() ? "." : folder, "/python3");
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return "";
}

PythonReport ProbePython(const PythonQuestion& question) {
  ChildQuestion asked = {[&](int fd) { BecomePython(question, fd); }, kLast};
  asked.patience = question.patience;
  const ChildAnswer answer = AskChild(asked);
  bool whole = false;
  PythonReport report = ParsePythonAnswer(answer.text, &whole);
  if (whole) return report;
  report = {};
  report.path = question.python;
  report.python.problem = WhyNoAnswer(question, answer);
  return report;
}

PythonReport ParsePythonAnswer(const std::string& text, bool* whole) {
  PythonReport report;
  *whole = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, kMark)) continue;
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields[0] == "python") {
      report.python = {Field(fields, 1), Field(fields, 2)};
      report.path = Field(fields, 3);
    } else if (fields[0] == "package") {
      report.package = Field(fields, 1);
    } else if (fields[0] == "framework") {
      report.frameworks[Field(fields, 1)] = {Field(fields, 2), Field(fields, 3)};
    } else if (fields[0] == "end") {
      *whole = true;
    }
  }
  return report;
}

}  // namespace hvd::cli
