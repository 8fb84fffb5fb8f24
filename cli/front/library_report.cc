#include "cli/front/library_report.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/printable.h"

namespace hvd {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);
constexpr size_t kLongestAnswer = 64 << 10;
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

// Reads to the end; false when that does not come in time.
bool ReadAnswer(int fd, std::string* answer) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::array<char, 4096> buffer;
  while (answer->size() < kLongestAnswer) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting = {fd, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got == 0) return true;
    if (got > 0) answer->append(buffer.data(), static_cast<size_t>(got));
    if (got < 0 && errno != EINTR) return false;
  }
  return false;
}

std::string HowItEnded(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSIGNALED(status)) return "it exited without an answer";
  return std::string("it crashes when it is loaded (") + strsignal(WTERMSIG(status)) + ")";
}

}  // namespace

LibraryReport ProbeLibrary(const std::string& path) {
  LibraryReport report;
  report.path = path;
  const std::string beside = path.substr(0, path.rfind('/') + 1);
  report.jax_handlers = access((beside + "libhvd_jax.so").c_str(), R_OK) == 0;
  report.torch_operators = access((beside + "libhvd_torch.so").c_str(), R_OK) == 0;
  if (access(path.c_str(), R_OK) != 0) {
    report.problem = "missing at " + Printable(path) + "; is the installation complete?";
    return report;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    report.problem = std::string("no pipe to ask it: ") + strerror(errno);
    return report;
  }
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    LoadAndAnswer(path, ends[1]);
  }
  close(ends[1]);
  std::string answer;
  const bool in_time = child > 0 && ReadAnswer(ends[0], &answer);
  close(ends[0]);
  if (child < 0) {
    report.problem = std::string("no process to ask it: ") + strerror(errno);
    return report;
  }
  if (!in_time) kill(child, SIGKILL);
  const std::string end = HowItEnded(child);
  if (!in_time) {
    report.problem = "it gives no answer";
  } else if (!answer.empty() && answer.front() == kInfo) {
    report.info = ParseBuildInfo(answer.substr(1));
  } else {
    report.problem = answer.empty() ? end : answer.substr(1);
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

}  // namespace hvd
