// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/ancestor.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvd::rt {
namespace {

constexpr int kMostSteps = 16;  // wrappers between a launcher and its program
// Numbers of proc(5)'s fields of stat, from the one behind the name.
constexpr size_t kParent = 1, kBirth = 19;

struct Known {
  std::string program;
  int parent = 0;
  std::string birth;  // ticks since the machine's start
};

// A program's name may hold blanks and brackets.
bool Look(int pid, Known* known) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::stringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  const size_t begin = text.find('('), end = text.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return false;
  const std::vector<std::string> fields =
      absl::StrSplit(text.substr(end + 1), ' ', absl::SkipEmpty());
  if (fields.size() <= kBirth || !absl::SimpleAtoi(fields[kParent], &known->parent)) return false;
  known->program = text.substr(begin + 1, end - begin - 1);
  known->birth = fields[kBirth];
  return true;
}

}  // namespace

std::string FindAncestor(const char* program) {
  int pid = getppid();
  for (int step = 0; step < kMostSteps && pid > 1; ++step) {
    Known known;
    if (!Look(pid, &known)) return "";
    if (known.program == program) return absl::StrCat(pid, ".", known.birth);
    pid = known.parent;
  }
  return "";
}

}  // namespace hvd::rt
