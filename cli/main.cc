// SPDX-License-Identifier: Apache-2.0
// hvdrun: decides what to run, then becomes three processes. gRPC and fork do not mix, so both
// forks come before the driver's first gRPC call.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file_limit.h"
#include "base/own_rights.h"
#include "base/printable.h"
#include "cli/console/console.h"
#include "cli/console/outputs.h"
#include "cli/console/word_colors.h"
#include "cli/driver/driver.h"
#include "cli/front/front.h"
#include "cli/link/frame.h"
#include "cli/link/term_signal.h"
#include "cli/reach/spawner.h"
#include "proto/deadlines.h"
#include "proto/exit_code.h"
#include "proto/open_files.h"

namespace hvd::cli {
namespace {

void Show(const std::string& lines, Tone tone) {
  const std::string shown = PrintableLines(lines);
  const bool color = StyleOf(STDERR_FILENO, false).color;
  fputs(color ? ColorWords(shown, tone).c_str() : shown.c_str(), stderr);
}

int Fail(const std::string& text, int code) {
  Show("hvdrun: " + text + "\n", Tone::kError);
  return code;
}

// Closes every descriptor but 0, 1, 2 and `kept`.
void CloseAllBut(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = STDERR_FILENO + 1;
  for (const int fd : kept) {
    if (static_cast<unsigned>(fd) > first) syscall(SYS_close_range, first, fd - 1, 0);
    first = fd + 1;
  }
  syscall(SYS_close_range, first, ~0u, 0);
}

// The helpers hold nothing of the person's: whoever reads our output sees its end when the console
// ends.
void LeaveTerminal(std::vector<int> kept) {
  CloseAllBut(std::move(kept));
  setsid();
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) dup2(null, fd);
  close(null);
  signal(SIGPIPE, SIG_IGN);
  // Whoever signals all processes of a job means the ranks, and the console tells them.
  for (const int number : {SIGHUP, SIGUSR1, SIGUSR2}) signal(number, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGCONT);  // one that is stopped could not see that its time is over
}

DaemonStart FindDaemon(const JobSecrets& secrets) {
  DaemonStart start;
  start.marker = secrets.marker;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  start.own_hvdd = self.parent_path() / "hvdd";
  start.own_hvdd_exists = access(start.own_hvdd.c_str(), X_OK) == 0;
  return start;
}

struct Ends {
  Descriptor console_driver, driver_console, driver_spawner, spawner_driver;
};

[[noreturn]] void BecomeDriver(const RunOptions& options, DriverSetup setup, Ends ends) {
  ends.console_driver.Reset();
  ends.spawner_driver.Reset();
  LeaveTerminal({ends.driver_console.get(), ends.driver_spawner.get()});
  setup.term = TakeTerm();
  setup.options = &options;
  setup.limits = ReadLauncherLimits();
  setup.console = std::move(ends.driver_console);
  setup.spawner = std::move(ends.driver_spawner);
  RunDriver(std::move(setup));
}

[[noreturn]] void BecomeSpawner(const SpawnerPlan& plan, Ends ends) {
  ends.console_driver.Reset();
  ends.driver_console.Reset();
  ends.driver_spawner.Reset();
  LeaveTerminal({ends.spawner_driver.get()});
  RunSpawner(plan, std::move(ends.spawner_driver));
  _exit(0);
}

Descriptor OpenPidfd(pid_t pid) {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// A helper ends with its last child. We wait for that, so that the shell finds nothing of the job
// when we return; not long, since what is stuck is being dealt with.
void AwaitEnd(const Descriptor& helper) {
  syscall(SYS_pidfd_send_signal, helper.get(), SIGCONT, nullptr, 0);
  pollfd wait = {helper.get(), POLLIN, 0};
  poll(&wait, 1, 250);
}

// Whether the driver of a job of so many hosts, and a host that is this machine, can live within
// the hard limit. An error says what to raise.
absl::Status CheckFileLimit(size_t hosts, bool any_local) {
  constexpr rlim_t kFilesPerHost = 2;  // the link and the remote shell's words
  constexpr rlim_t kOtherFiles = 24;   // gRPC's, our own, the timeline
  const rlim_t needed =
      std::max<rlim_t>(hosts * kFilesPerHost + kOtherFiles, any_local ? kLeastFilesOfHost : 0);
  if (MostFiles() >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a job of ", hosts, hosts == 1 ? " host" : " hosts", " needs ", needed, " open files, and ",
      MostFiles(), " are allowed here; raise the hard limit (ulimit -Hn)"));
}

// The rank that has called is to have no child that its program could meet, and hvdrun goes on
// while that one ends.
int GoOnAlone() {
  const pid_t child = fork();
  if (child > 0) _exit(kExitOk);
  if (child == 0) return kExitOk;
  return Fail(std::string("cannot make a process: ") + strerror(errno), kExitLauncher);
}

int Run(const RunOptions& options) {
  if (options.adoption.has_value() && GoOnAlone() != kExitOk) return kExitLauncher;
  const bool any_local =
      std::find(options.is_local.begin(), options.is_local.end(), true) != options.is_local.end();
  const absl::Status files = CheckFileLimit(options.topology.hosts().size(), any_local);
  if (!files.ok()) return Fail(std::string(files.message()), kExitLauncher);
  DriverSetup setup;
  if (!MakeJobSecrets(&setup.secrets))
    return Fail("the kernel gives no random bytes", kExitLauncher);
  setup.start = FindDaemon(setup.secrets);
  setup.shows_status = StyleOf(STDERR_FILENO, false).redraws;
  SpawnerPlan plan;
  plan.patience_s = options.grace_s + SecondsOf(kSpawnerMargin);
  for (size_t host = 0; host < options.topology.hosts().size(); ++host) {
    auto argv = DaemonArgv(options, setup.start, TargetOf(options, host));
    if (!argv.ok()) return Fail(std::string(argv.status().message()), kExitUsage);
    // The driver says which hosts of an elastic job are reached, and when.
    if (host < kStartsAtOnce && !options.elastic) plan.argv.push_back(*std::move(argv));
  }
  Ends ends;
  if (!MakeFramePair(&ends.console_driver, &ends.driver_console) ||
      !MakeFramePair(&ends.driver_spawner, &ends.spawner_driver)) {
    return Fail(std::string("cannot make a socket pair: ") + strerror(errno), kExitLauncher);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // children of a helper that died come to us, and are reaped
  const pid_t spawner = fork();
  if (spawner == 0) BecomeSpawner(plan, std::move(ends));
  const pid_t driver = spawner < 0 ? -1 : fork();
  if (driver == 0) BecomeDriver(options, std::move(setup), std::move(ends));
  if (driver < 0) {
    return Fail(std::string("cannot make its own processes: ") + strerror(errno) +
                    "; look at the limit of processes (ulimit -u, the cgroup's pids.max)",
                kExitLauncher);
  }
  ends.driver_console.Reset();
  ends.driver_spawner.Reset();
  ends.spawner_driver.Reset();
  const Descriptor helpers[] = {OpenPidfd(driver), OpenPidfd(spawner)};
  const int code = RunConsole(options, std::move(ends.console_driver), driver);
  for (const Descriptor& helper : helpers) AwaitEnd(helper);
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
  return code;
}

int Main(int argc, char** argv) {
  if (HasBorrowedRights()) return Fail(absl::StrCat("it ", kBorrowedRightsWords), kExitLauncher);
  // Ignored by who started us, it would be so here, and the kernel keep the ends of our children.
  signal(SIGCHLD, SIG_DFL);
  signal(SIGXFSZ, SIG_IGN);  // a limit of files' sizes is an error of a write, and told
  const FrontOutcome outcome = DecideRun(argc, argv, ThisMachine());
  Show(outcome.err, outcome.exit_code > 0 ? Tone::kError : Tone::kNotice);
  if (outcome.exit_code < 0) return Run(outcome.options);
  const std::string answer = PrintableLines(outcome.out);
  if (fwrite(answer.data(), 1, answer.size(), stdout) == answer.size() && fflush(stdout) == 0) {
    return outcome.exit_code;
  }
  const int code = Fail(std::string("cannot write to stdout: ") + strerror(errno), 1);
  return outcome.exit_code == 0 ? code : outcome.exit_code;
}

}  // namespace
}  // namespace hvd::cli

int main(int argc, char** argv) {
  const int code = hvd::cli::Main(argc, argv);
  // No destructors: gRPC's static state has nothing that outlives us.
  fflush(nullptr);
  _exit(code);
}
