// SPDX-License-Identifier: Apache-2.0
#include "cli/front/library_report.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/printable.h"
#include "cli/front/child_answer.h"

namespace hvd::cli {
namespace {

// The answer's first byte.
constexpr char kInfo = 'i';
constexpr char kProblem = 'p';

void Answer(int fd, char kind, const char* text) {
  const std::string answer = kind + std::string(text);
  size_t sent = 0;
  while (sent < answer.size()) {
    const ssize_t written = write(fd, answer.data() + sent, answer.size() - sent);
    if (written < 0 && errno != EINTR) return;
    if (written > 0) sent += static_cast<size_t>(written);
  }
}

// In the child; whatever the library does to this process ends with it.
[[noreturn]] void LoadAndAnswer(const std::string& path, int fd) {
  // A crash shall end this child at once, whatever its parent does on one.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) std::signal(signal, SIG_DFL);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    Answer(fd, kProblem, dlerror());
    _exit(1);
  }
  using BuildInfo = const char* (*)();
  const auto build_info = reinterpret_cast<BuildInfo>(dlsym(library, "hvd_build_info"));
  if (build_info == nullptr) {
    Answer(fd, kProblem, "it has no hvd_build_info: not hvd's library");
    _exit(1);
  }
  Answer(fd, kInfo, build_info());
  _exit(0);
}

std::string WhyNot(const ChildAnswer& answer) {
  if (!answer.problem.empty()) return "it " + answer.problem;
  if (!answer.text.empty()) return answer.text.substr(1);
  if (!WIFSIGNALED(answer.wait_status)) return "it exited without an answer";
  return std::string("it crashes when it is loaded (") + strsignal(WTERMSIG(answer.wait_status)) +
         ")";
}

}  // namespace

LibraryReport ProbeLibrary(const std::string& path) {
  LibraryReport report;
  report.path = path;
  if (access(path.c_str(), R_OK) != 0) {
    report.problem = "missing at " + Printable(path) + "; is the installation complete?";
    return report;
  }
  const ChildAnswer answer = AskChild({[&](int fd) { LoadAndAnswer(path, fd); }, ""});
  if (answer.problem.empty() && !answer.text.empty() && answer.text.front() == kInfo) {
    report.info = ParseBuildInfo(answer.text.substr(1));
  } else {
    report.problem = WhyNot(answer);
  }
  return report;
}

std::map<std::string, std::string> ParseBuildInfo(const std::string& text) {
  std::map<std::string, std::string> info;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    const size_t equals = line.find('=');
    if (equals != std::string::npos && equals > 0) {
      info[line.substr(0, equals)] = line.substr(equals + 1);
    }
    from = end + 1;
  }
  return info;
}

}  // namespace hvd::cli
