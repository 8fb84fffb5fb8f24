// SPDX-License-Identifier: Apache-2.0
// The console as a real process, with the test as its driver.
#include "cli/console/console.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <catch2/catch.hpp>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "cli/link/frame.h"
#include "tests/support/patience.h"

namespace hvd::cli {
namespace {

RunOptions TwoRanks() {
  RunOptions options;
  options.np = 2;
  options.topology = Topology({{"alpha", 2}});
  options.grace_s = 1;
  return options;
}

enum class Ends {
  kPipes,     // stdin, stdout and stderr are a pipe each
  kOnePipe,   // stdout and stderr are the same pipe
  kFull,      // stdout is /dev/full
  kTerminal,  // all are one terminal, and the console is its session's leader
};

class ConsoleProcess {
 public:
  explicit ConsoleProcess(Ends ends = Ends::kPipes) {
    const bool terminal = ends == Ends::kTerminal;
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) abort();
    int master = -1, slave = -1;
    if (terminal && openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) abort();
    Descriptor theirs;
    if (!MakeFramePair(&driver, &theirs)) abort();
    // A process that stands for the driver's, to be waited for.
    pid = fork();
    if (pid == 0) {
      setsid();
      if (terminal) login_tty(slave);
      if (ends == Ends::kFull) out[1] = open("/dev/full", O_WRONLY);
      if (!terminal) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(ends == Ends::kOnePipe ? out[1] : err[1], 2);
      }
      unsetenv("NO_COLOR");
      driver.Reset();
      for (int fd : {in[0], in[1], out[0], out[1], err[0], err[1], master}) close(fd);
      const pid_t stand_in = fork();
      if (stand_in == 0) {
        theirs.Reset();
        pause();
      }
      signal(SIGUSR1, SIG_DFL);
      kill(stand_in, SIGKILL);
      _exit(RunConsole(TwoRanks(), std::move(theirs), stand_in));
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    if (slave >= 0) close(slave);
    this->in.Reset(terminal ? dup(master) : in[1]);
    this->out.Reset(terminal ? dup(master) : out[0]);
    this->err.Reset(err[0]);
    if (terminal) close(in[1]);
    if (terminal) close(out[0]);
    if (terminal) close(master);
  }
  ~ConsoleProcess() {
    if (pid > 0) kill(pid, SIGKILL);
    if (pid > 0) waitpid(pid, nullptr, 0);
  }

  static bool Readable(int fd) {
    pollfd wait = {fd, POLLIN, 0};
    return poll(&wait, 1, PatientMs(5000)) == 1;
  }
  // Its next word but those on how much output it has taken.
  Frame Next() {
    Frame frame;
    do {
      frame.kind = FrameKind::kFinal;  // never sent by a console
      if (Readable(driver.get())) ReceiveFrame(driver.get(), &frame);
    } while (frame.kind == FrameKind::kOutputTaken);
    return frame;
  }
  // Sends output for as long as the console takes it. Returns how many bytes.
  uint64_t Flood(bool is_stderr) {
    uint64_t sent = 0, taken = 0;
    while (sent <= taken) {
      Frame flood;
      flood.kind = FrameKind::kOutput;
      flood.is_stderr = is_stderr;
      flood.text = std::string(50000, 'x') + "\n";
      SendFrame(driver.get(), flood);
      sent += flood.text.size();
      pollfd wait = {driver.get(), POLLIN, 0};
      if (poll(&wait, 1, PatientMs(300)) != 1) continue;
      Frame frame;
      ReceiveFrame(driver.get(), &frame);
      if (frame.kind == FrameKind::kOutputTaken) taken = frame.number;
    }
    return sent;
  }
  // Reads until `text` has come; what was read otherwise.
  std::string Until(int fd, const std::string& text) {
    std::string all;
    char piece[4096];
    while (all.find(text) == all.npos && Readable(fd)) {
      const ssize_t got = read(fd, piece, sizeof piece);
      if (got <= 0) break;
      all.append(piece, got);
    }
    return all;
  }
  void Send(FrameKind kind, std::string text, uint64_t number = 0, bool end = false) {
    Frame frame;
    frame.kind = kind;
    frame.text = std::move(text);
    frame.number = number;
    frame.end = end;
    SendFrame(driver.get(), frame);
  }
  int ExitCode() {
    int status = 0;
    waitpid(std::exchange(pid, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // By its own first answer: its signals are its own from then on.
  void Settle() {
    Send(FrameKind::kNotice, "ready\n");
    Until(err_or_out, "ready");
  }

  Descriptor driver, in, out, err;
  int err_or_out = -1;
  pid_t pid = -1;
};

TEST_CASE("output, then the verdict last, then the exit code") {
  ConsoleProcess console;
  console.Send(FrameKind::kOutput, "one\npart");
  console.Send(FrameKind::kFinal, "hvdrun: the verdict\n", 7);
  CHECK(console.Until(console.err.get(), "verdict\n") == "hvdrun: the verdict\n");
  CHECK(console.ExitCode() == 7);
  CHECK(console.Until(console.out.get(), "never") == "[0]<stdout>:one\n");
}

TEST_CASE("without its driver it says so and gives 125") {
  ConsoleProcess console;
  console.driver.Reset();
  CHECK(
      console.Until(console.err.get(), "125\n").find("its driver process was killed by signal 9") !=
      std::string::npos);
  CHECK(console.ExitCode() == 125);
}

TEST_CASE("stdin goes in pieces that fit the room, and ends") {
  ConsoleProcess console;
  REQUIRE(write(console.in.get(), "abcdef", 6) == 6);
  console.Send(FrameKind::kStdinRoom, "", 4);
  CHECK(console.Next().text == "abcd");
  console.Send(FrameKind::kStdinRoom, "", 100);
  CHECK(console.Next().text == "ef");
  console.in.Reset();
  const Frame end = console.Next();
  CHECK(end.kind == FrameKind::kStdin);
  CHECK(end.end);
}

TEST_CASE("signals are told; the third Ctrl-C leaves") {
  ConsoleProcess console;
  console.err_or_out = console.err.get();
  console.Settle();
  for (const int signal : {SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGQUIT, SIGHUP}) {
    kill(console.pid, signal);
    CHECK(console.Next().number == static_cast<uint64_t>(signal));
  }
  for (int i = 0; i < 2; ++i) {
    kill(console.pid, SIGINT);
    CHECK(console.Next().number == SIGINT);
  }
  kill(console.pid, SIGINT);
  CHECK(console.ExitCode() == 130);
}

TEST_CASE("a closed stdout is told once, quietly") {
  ConsoleProcess console;
  console.out.Reset();
  console.Send(FrameKind::kOutput, "one\n");
  CHECK(console.Next().kind == FrameKind::kOutputGone);
  console.Send(FrameKind::kOutput, "two\n");
  console.Send(FrameKind::kFinal, "", 141);
  CHECK(console.ExitCode() == 141);
  CHECK(console.Until(console.err.get(), "never").empty());
}

TEST_CASE("a reader that does not read stops neither words nor signals nor the end of the job") {
  ConsoleProcess console;
  console.err_or_out = console.err.get();
  console.Settle();
  const uint64_t sent = console.Flood(false);
  console.Send(FrameKind::kNotice, "hvdrun: a word\n");
  CHECK(console.Until(console.err.get(), "a word\n") == "hvdrun: a word\n");
  kill(console.pid, SIGTERM);
  CHECK(console.Next().number == SIGTERM);
  console.Send(FrameKind::kEnding, "");
  console.Send(FrameKind::kDrain, "");
  const Frame lost = console.Next();
  CHECK(lost.kind == FrameKind::kOutputLost);
  CHECK(lost.text.find(" bytes of output were not taken by the reader of stdout and are lost") !=
        lost.text.npos);
  CHECK(strtoull(lost.text.c_str(), nullptr, 10) > sent - 100000);  // the rest is in the pipe
  CHECK(console.Next().kind == FrameKind::kDrained);
  console.Send(FrameKind::kFinal, "hvdrun: the verdict\n", 143);
  CHECK(console.Until(console.err.get(), "verdict\n") == "hvdrun: the verdict\n");
  CHECK(console.ExitCode() == 143);
}

TEST_CASE("a stderr that nobody reads holds the end up for the grace only") {
  ConsoleProcess console;
  console.err_or_out = console.err.get();
  console.Settle();
  console.Flood(true);
  console.Send(FrameKind::kFinal, "hvdrun: the verdict\n", 7);
  CHECK(console.ExitCode() == 7);
}

TEST_CASE("a held terminal holds the end up for the grace only") {
  ConsoleProcess console(Ends::kTerminal);
  console.err_or_out = console.out.get();
  console.Settle();
  REQUIRE(write(console.in.get(), "\x13", 1) == 1);  // Ctrl-S
  console.Flood(false);
  console.Send(FrameKind::kDrain, "");
  Frame frame = console.Next();
  while (frame.kind == FrameKind::kSignal) frame = console.Next();
  CHECK(frame.kind == FrameKind::kOutputLost);
  console.Send(FrameKind::kFinal, "hvdrun: the verdict\n", 7);
  CHECK(console.ExitCode() == 7);
}

TEST_CASE("time in which the console was stopped is none that its reader let go by") {
  ConsoleProcess console;
  console.err_or_out = console.err.get();
  console.Settle();
  console.Flood(false);
  console.Send(FrameKind::kDrain, "");
  kill(console.pid, SIGSTOP);
  waitpid(console.pid, nullptr, WUNTRACED);
  poll(nullptr, 0, 1500);  // longer than the grace
  std::thread reader([&] { console.Until(console.out.get(), "never"); });
  kill(console.pid, SIGCONT);
  CHECK(console.Next().number == SIGCONT);
  CHECK(console.Next().kind == FrameKind::kDrained);
  console.Send(FrameKind::kFinal, "", 0);
  CHECK(console.ExitCode() == 0);
  reader.join();
}

TEST_CASE("a second signal does not wait for a reader that takes nothing") {
  ConsoleProcess console;
  console.err_or_out = console.err.get();
  console.Settle();
  console.Flood(false);
  for (int i = 0; i < 2; ++i) {
    kill(console.pid, SIGINT);
    CHECK(console.Next().number == SIGINT);
  }
  console.Send(FrameKind::kFinal, "", 130);
  CHECK(console.ExitCode() == 130);
}

// A frame of lines for each stream.
void SendBoth(ConsoleProcess* console, size_t bytes) {
  for (const bool is_stderr : {false, true}) {
    Frame flood;
    flood.kind = FrameKind::kOutput;
    flood.is_stderr = is_stderr;
    while (flood.text.size() < bytes) flood.text += std::string(99, is_stderr ? 'e' : 'o') + "\n";
    SendFrame(console->driver.get(), flood);
  }
}

TEST_CASE("stdout and stderr on one pipe: no line is cut") {
  ConsoleProcess console(Ends::kOnePipe);
  for (int i = 0; i < 5; ++i) SendBoth(&console, 20000);
  console.Send(FrameKind::kFinal, "", 0);
  std::istringstream lines(console.Until(console.out.get(), "never"));
  std::map<std::string, int> counts;
  for (std::string line; std::getline(lines, line);) ++counts[line];
  CHECK(counts == std::map<std::string, int>{{"[0]<stdout>:" + std::string(99, 'o'), 1000},
                                             {"[0]<stderr>:" + std::string(99, 'e'), 1000}});
}

TEST_CASE("stdout and stderr on one pipe that nobody reads: signals are heard") {
  ConsoleProcess console(Ends::kOnePipe);
  console.err_or_out = console.out.get();
  console.Settle();
  console.Flood(false);
  console.Flood(true);
  for (int i = 0; i < 2; ++i) {
    kill(console.pid, SIGINT);
    CHECK(console.Next().number == SIGINT);
  }
  kill(console.pid, SIGINT);
  CHECK(console.ExitCode() == 130);
}

TEST_CASE("what cannot be written is told at once, and at the end") {
  ConsoleProcess console(Ends::kFull);
  console.Send(FrameKind::kOutput, "hello\n");
  CHECK(console.Until(console.err.get(), "files)\n")
            .find("cannot write to stdout: No space left on device; the job goes on") !=
        std::string::npos);
  console.Send(FrameKind::kDrain, "");
  CHECK(console.Next().text ==
        "cannot write to stdout: No space left on device; 18 bytes of output are lost");
}

TEST_CASE("on a terminal: prefixes in colour, and Ctrl-C by key") {
  ConsoleProcess console(Ends::kTerminal);
  console.err_or_out = console.out.get();
  console.Settle();
  console.Send(FrameKind::kOutput, "hello\n");
  CHECK(console.Until(console.out.get(), "hello").find("alpha:0|") != std::string::npos);
  REQUIRE(write(console.in.get(), "\x03", 1) == 1);
  CHECK(console.Next().number == SIGINT);
}

TEST_CASE("a prompt is shown, and its line goes on after the answer") {
  ConsoleProcess console;
  console.Send(FrameKind::kOutput, "name? ");
  CHECK(console.Until(console.out.get(), "name? ") == "[0]<stdout>:name? ");
  console.Send(FrameKind::kOutput, "hi\n");
  CHECK(console.Until(console.out.get(), "\n") == "hi\n");
}

TEST_CASE("on a terminal the answer's Enter ends the prompt's line") {
  ConsoleProcess console(Ends::kTerminal);
  console.err_or_out = console.out.get();
  console.Settle();
  console.Send(FrameKind::kStdinRoom, "", 100);
  console.Send(FrameKind::kOutput, "name? ");
  console.Until(console.out.get(), "name? ");
  REQUIRE(write(console.in.get(), "you\n", 4) == 4);
  CHECK(console.Next().text == "you\n");
  console.Send(FrameKind::kOutput, "hi\n");
  CHECK(console.Until(console.out.get(), "hi").find("alpha:0|") != std::string::npos);
}

TEST_CASE("the terminal's end is told as one") {
  ConsoleProcess console(Ends::kTerminal);
  console.err_or_out = console.out.get();
  console.Settle();
  console.in.Reset();
  console.out.Reset();
  Frame frame = console.Next();
  while (frame.kind == FrameKind::kSignal && frame.number != SIGHUP) frame = console.Next();
  CHECK(frame.number == SIGHUP);
  CHECK(frame.end);
}

}  // namespace
}  // namespace hvd::cli
