// SPDX-License-Identifier: Apache-2.0
// hvdd: the daemon of one host of a job. hvdrun starts it, by a remote shell or a fork, and speaks
// to it over its stdin and stdout.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file_limit.h"
#include "base/own_rights.h"
#include "base/source_error.h"
#include "daemon/job/daemon.h"
#include "daemon/link_a/await.h"
#include "daemon/link_a/channel.h"
#include "daemon/link_a/dial.h"
#include "daemon/link_a/service.h"
#include "daemon/shim/shim_start.h"
#include "proto/exit_code.h"
#include "proto/hello.h"
#include "proto/host_identity.h"
#include "proto/open_files.h"

namespace hvd::daemon {
namespace {

constexpr int kUsage = 2;

constexpr absl::string_view kHelp =
    "usage: hvdd --marker HEX [--containment auto|namespace|cgroup|subreaper]\n"
    "       hvdd --await SECONDS\n"
    "       hvdd --dial HOST COMMAND\n"
    "\n"
    "The daemon of one host of an hvd job. hvdrun starts it and speaks to it over its\n"
    "stdin and stdout; it is of no use by hand.\n"
    "\n"
    "  --marker HEX         word that precedes the hello line\n"
    "  --containment LEVEL  how the job's processes are held together (auto: the strongest\n"
    "                       that works here)\n"
    "  --await SECONDS      wait so long for one call of a job whose secret HVD_AWAIT_SECRET is,\n"
    "                       and become what it says (ranks of other launchers start this)\n"
    "  --dial HOST COMMAND  call the --await of a host that HVD_ADOPTION names\n"
    "  --version            print the version\n"
    "  --help               print this\n";

struct Arguments {
  std::string marker;
  ContainmentLevel containment = ContainmentLevel::kAuto;
};

int Complain(const std::string& what) {
  fprintf(stderr, "hvdd: %s\nTry 'hvdd --help'.\n", what.c_str());
  return kUsage;
}

// Returns -1 to go on, else the exit code.
int Parse(int argc, char** argv, Arguments* arguments) {
  int next = 1;
  while (next < argc) {
    const absl::string_view word = argv[next++];
    if (word == "--help") return fputs(kHelp.data(), stdout), 0;
    if (word == "--version") return puts("hvdd " HVD_VERSION), 0;
    if (word != "--marker" && word != "--containment") {
      return Complain(absl::StrCat("unknown argument ", Quoted(word)));
    }
    if (next == argc) return Complain(absl::StrCat(word, " needs a value"));
    const char* const value = argv[next++];
    if (word == "--marker") arguments->marker = value;
    if (word == "--containment" && !ParseLevel(value, &arguments->containment)) {
      return Complain(absl::StrCat("--containment ", Quoted(value),
                                   " is none of auto, namespace, cgroup, subreaper"));
    }
  }
  if (arguments->marker.empty()) {
    return Complain("this is the daemon that hvdrun starts on each host; run hvdrun instead");
  }
  return -1;
}

// TERM, INT and HUP end the job. USR1 and USR2 are for the ranks: Slurm sends them to what it has
// started, which is hvdd. Blocked before any thread exists.
int OpenSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    sigaddset(&signals, signal);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Threads or memory that this host does not give end hvdd, in words and not as a crash.
[[noreturn]] void EndForWant() {
  const char* what = nullptr;
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      what =
          "hvdd: this host gives no more threads; raise the limit of processes (ulimit -u, the "
          "cgroup's pids.max) or of memory (ulimit -v)\n";
    }
  } catch (const std::bad_alloc&) {
    what = "hvdd: this host gives no more memory; raise its limit (ulimit -v)\n";
  } catch (...) {
  }
  if (what == nullptr) std::abort();
  fputs(what, stderr);
  _exit(kExitLauncher);
}

int Await(const char* patience) {
  int seconds = 0;
  if (!absl::SimpleAtoi(patience, &seconds) || seconds < 1) {
    return Complain(absl::StrCat("--await ", Quoted(patience), " is no number of seconds"));
  }
  syscall(SYS_close_range, 3, ~0U, 0);
  return AwaitCall(seconds);
}

int Serve(const Arguments& arguments) {
  if (HasBorrowedRights()) {
    fprintf(stderr, "hvdd: it %s\n", kBorrowedRightsWords);
    return kExitLauncher;
  }
  std::set_terminate(EndForWant);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a limit of files' sizes is an error of a write, and told
  signal(SIGCHLD, SIG_DFL);  // ignored by our starter, it would be so here, and no end be told
  // Many ranks have many pipes, and their doors have a high number. The ranks get the limits that
  // the launch tells.
  const rlim_t files = RaiseFileLimit().rlim_max;
  if (files < kLeastFilesOfHost) {
    fprintf(stderr, "hvdd: this host lets it open only %llu files, and it needs %d\n",
            static_cast<unsigned long long>(files), kLeastFilesOfHost);
    return kExitLauncher;
  }
  syscall(SYS_close_range, 3, ~0U, 0);  // whatever the starter forgot
  // First of all, while this process has one thread and no gRPC.
  absl::StatusOr<ShimProcess> shim = StartShim(arguments.containment);
  const int signals = OpenSignals();
  absl::StatusOr<Descriptor> connection =
      TakeConnection(FormatHello(arguments.marker, {kLinkAProtocol, HVD_VERSION, HostIdentity()}));
  if (!connection.ok()) {
    fprintf(stderr, "hvdd: %s\n", std::string(connection.status().message()).c_str());
    return kExitLauncher;
  }
  LinkA link;
  Daemon daemon(std::move(shim), [&link](const v1::Event& event) { link.Emit(event); });
  daemon.loop()->Watch(signals, EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info;
    if (read(signals, &info, sizeof(info)) != sizeof(info)) return;
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGUSR1 || number == SIGUSR2) return daemon.PassOn(number);
    std::string why = absl::StrCat("hvdd got signal ", number, " (", sigdescr_np(number), ")");
    if (number == SIGTERM) return daemon.Terminate(std::move(why));
    daemon.Leave(std::move(why));
  });
  // The driver's death shows here at once, also before it has opened any stream.
  const Descriptor ending(fcntl(connection->get(), F_DUPFD_CLOEXEC, 3));
  daemon.loop()->Watch(ending.get(), EPOLLRDHUP, [&](uint32_t) {
    daemon.loop()->Forget(ending.get());
    daemon.DriverGone("hvdrun is gone: its connection ended");
  });
  link.Serve(*std::move(connection), &daemon);
  daemon.Run();
  _exit(0);  // nothing is left to say; gRPC takes its time to wind down
}

}  // namespace
}  // namespace hvd::daemon

int main(int argc, char** argv) {
  const absl::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--dial" && argc == 4) return hvd::daemon::Dial(argv[2], argv[3]);
  if (first == "--await" && argc == 3) return hvd::daemon::Await(argv[2]);
  hvd::daemon::Arguments arguments;
  const int exit_code = hvd::daemon::Parse(argc, argv, &arguments);
  return exit_code >= 0 ? exit_code : hvd::daemon::Serve(arguments);
}
