// SPDX-License-Identifier: Apache-2.0
#include "cli/front/child_answer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/descriptor.h"

namespace hvd::cli {
namespace {

constexpr size_t kLongest = 64 << 10;

[[noreturn]] void AnswerInChild(const ChildQuestion& question, int fd) {
  setpgid(0, 0);  // so that all it starts can be ended with it
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  question.answer(fd);
  _exit(1);
}

int MillisecondsUntil(TimePoint deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

enum class Reading { kWhole, kEnd, kLate, kLong, kBroken };

Reading ReadAnswer(int fd, const std::string& last, TimePoint deadline, std::string* text) {
  std::array<char, 4096> buffer;
  while (text->size() < kLongest) {
    pollfd waiting = {fd, POLLIN, 0};
    const int ready = poll(&waiting, 1, MillisecondsUntil(deadline));
    if (ready == 0) return Reading::kLate;
    const ssize_t got = ready < 0 ? -1 : read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno != EINTR) return Reading::kBroken;
    if (got == 0) return Reading::kEnd;
    if (got > 0) text->append(buffer.data(), static_cast<size_t>(got));
    if (!last.empty() && absl::EndsWith(*text, last)) return Reading::kWhole;
  }
  return Reading::kLong;
}

std::string ProblemOf(Reading reading, std::chrono::milliseconds patience) {
  switch (reading) {
    case Reading::kLate:
      return absl::StrCat("gives no answer within ", SecondsOf(patience), " s");
    case Reading::kLong:
      return "does not stop talking";
    case Reading::kBroken:
      return absl::StrCat("cannot be heard: ", strerror(errno));
    case Reading::kWhole:
    case Reading::kEnd:
      break;
  }
  return "";
}

// Until the child has ended, or time is up.
void AwaitEnd(pid_t child, TimePoint deadline) {
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  pollfd waiting = {process.get(), POLLIN, 0};
  while (process.valid() && poll(&waiting, 1, MillisecondsUntil(deadline)) < 0 && errno == EINTR) {
  }
}

}  // namespace

ChildAnswer AskChild(const ChildQuestion& question) {
  ChildAnswer answer;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    answer.problem = absl::StrCat("cannot be asked (pipe: ", strerror(errno), ")");
    return answer;
  }
  const Descriptor reading_end(ends[0]);
  Descriptor writing(ends[1]);
  const pid_t child = fork();
  if (child == 0) AnswerInChild(question, writing.get());
  writing.Reset();
  if (child < 0) {
    answer.problem = absl::StrCat("cannot be asked (fork: ", strerror(errno), ")");
    return answer;
  }
  setpgid(child, child);  // here, too: whoever comes first
  const TimePoint deadline = Clock::now() + question.patience;
  const Reading reading = ReadAnswer(reading_end.get(), question.last, deadline, &answer.text);
  answer.problem = ProblemOf(reading, question.patience);
  // A child that has closed its end is about to end by itself, and how is worth knowing.
  if (reading == Reading::kEnd) AwaitEnd(child, deadline);
  kill(-child, SIGKILL);
  while (waitpid(child, &answer.wait_status, 0) < 0 && errno == EINTR) {
  }
  return answer;
}

}  // namespace hvd::cli
