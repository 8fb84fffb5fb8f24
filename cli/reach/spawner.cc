// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/file_limit.h"
#include "cli/link/frame.h"
#include "cli/link/term_signal.h"
#include "cli/reach/execute.h"
#include "cli/reach/look.h"
#include "cli/reach/prompt_sockets.h"

namespace hvd::cli {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Runs in the child, which is single-threaded. Never returns.
[[noreturn]] void BecomeChild(const Execution& execution, pid_t parent) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before we asked
  Execute(execution);
}

// The driver decides what it means.
Frame TermFrame() {
  Frame frame;
  frame.kind = FrameKind::kSignal;
  frame.number = SIGTERM;
  return frame;
}

class Spawner {
 public:
  Spawner(const SpawnerPlan& plan, Descriptor driver)
      : patience_s_(plan.patience_s), driver_(std::move(driver)) {
    for (const auto& argv : plan.argv) commands_[static_cast<int>(commands_.size())] = argv;
  }

  void Run();

 private:
  struct Child {
    pid_t pid;
    Descriptor pidfd;
  };

  void Start(int host);
  absl::string_view Make(int host, Frame* started);
  int Patience() const;
  void TakeFrames();
  void StartLook(const Frame& asked);
  void Reap(int host);
  void Tell(Frame frame);
  void SendTold();
  void Kill(const Child& child, bool with_children);
  void KillAll();

  const double patience_s_;
  std::map<int, std::vector<std::string>> commands_;  // by host
  const rlimit files_ = RaiseFileLimit();             // the person's own, which our children get
  const Descriptor term_ = TakeTerm();
  Descriptor driver_;
  bool driver_gone_ = false;
  double kill_at_ = 0;             // once the driver is gone
  std::map<int, Child> children_;  // by host
  LookProcess look_;               // for the hosts
  std::deque<Frame> told_;         // for the driver, not sent yet
};

void Spawner::Run() {
  for (const auto& [host, argv] : commands_) Start(host);
  while (!driver_gone_ || !children_.empty() || look_.running()) {
    std::vector<pollfd> waits;
    std::vector<int> hosts;
    waits.push_back({driver_gone_ ? -1 : driver_.get(),
                     static_cast<short>(POLLIN | (told_.empty() ? 0 : POLLOUT)), 0});
    for (const auto& [host, child] : children_) {
      waits.push_back({child.pidfd.get(), POLLIN, 0});
      hosts.push_back(host);
    }
    waits.push_back({term_.get(), POLLIN, 0});
    const size_t term = waits.size() - 1;
    look_.AddWaits(&waits);
    if (poll(waits.data(), waits.size(), Patience()) < 0 && errno != EINTR) return KillAll();
    for (size_t i = 0; i < hosts.size(); ++i) {
      if (waits[i + 1].revents) Reap(hosts[i]);
    }
    if (waits[term].revents && TermHasCome(term_)) Tell(TermFrame());
    for (Frame& frame : look_.Turn(MonotonicSeconds())) Tell(std::move(frame));
    if (waits[0].revents & POLLOUT) SendTold();
    if (waits[0].revents & ~POLLOUT) TakeFrames();
    if (driver_gone_ && MonotonicSeconds() >= kill_at_) KillAll();
  }
}

// For poll: how long until something is due.
int Spawner::Patience() const {
  const double due = std::min(driver_gone_ ? kill_at_ : kNever, look_.deadline());
  if (due == kNever) return -1;
  return static_cast<int>(std::max(0.0, due - MonotonicSeconds()) * 1000) + 1;
}

void Spawner::TakeFrames() {
  for (;;) {
    Frame frame;
    const FrameResult result = ReceiveFrame(driver_.get(), &frame);
    if (result == FrameResult::kWouldBlock) return;
    if (result == FrameResult::kGone) {
      // The children have seen the end of their link, too: daemons stop their ranks with grace.
      driver_gone_ = true;
      told_.clear();
      look_.End();
      kill_at_ = MonotonicSeconds() + patience_s_;
      return;
    }
    if (frame.kind == FrameKind::kLook) {
      StartLook(frame);
      continue;
    }
    const int host = static_cast<int>(frame.index);
    if (frame.kind == FrameKind::kStart) {
      if (!frame.text.empty()) commands_[host] = absl::StrSplit(frame.text, '\0');
      if (commands_.count(host) != 0) Start(host);
    }
    const auto child = children_.find(host);
    if (frame.kind == FrameKind::kHasten && child != children_.end()) {
      MakeSocketsPrompt(child->second.pid, child->second.pidfd);
    }
    if (frame.kind == FrameKind::kKill && child != children_.end()) Kill(child->second, frame.end);
  }
}

void Spawner::StartLook(const Frame& asked) {
  if (look_.running()) return;  // its end will be told, and one at a time is enough
  const std::vector<std::string> argv = absl::StrSplit(asked.text, '\0');
  const double bound_s = static_cast<double>(asked.number) / 1000;
  const absl::string_view failed = look_.Start({argv, 0, 1, 2, files_}, bound_s);
  if (failed.empty()) return;
  Frame frame;
  frame.kind = FrameKind::kLookEnded;
  frame.index = static_cast<uint32_t>(LookEnd::kNotMade);
  frame.text = absl::StrCat(failed, ": ", strerror(errno));
  Tell(std::move(frame));
}

void Spawner::Start(int host) {
  if (children_.count(host) != 0) return;
  Frame frame;
  frame.kind = FrameKind::kStarted;
  frame.index = host;
  const absl::string_view failed = Make(host, &frame);
  if (!failed.empty()) {
    frame = Frame();
    frame.kind = FrameKind::kFailed;
    frame.index = host;
    frame.text = absl::StrCat(failed, ": ", strerror(errno));
  }
  Tell(std::move(frame));
}

// Returns what failed, with errno; empty for success.
absl::string_view Spawner::Make(int host, Frame* started) {
  int link[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) != 0) return "socketpair";
  Descriptor ours(link[0]), theirs(link[1]);
  int errors[2];
  if (pipe2(errors, O_CLOEXEC) != 0) return "pipe";
  Descriptor errors_read(errors[0]), errors_write(errors[1]);
  // The child's ends stay blocking; ours are flags of other open files.
  fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  fcntl(errors_read.get(), F_SETFL, O_NONBLOCK);
  const Execution child = {commands_[host], theirs.get(), theirs.get(), errors_write.get(), files_};
  const pid_t own = getpid();
  const pid_t pid = fork();
  if (pid < 0) return "fork";
  if (pid == 0) BecomeChild(child, own);
  Descriptor pidfd = HoldChild(pid);
  if (!pidfd.valid()) return "pidfd_open";
  children_[host] = {pid, std::move(pidfd)};
  started->fds.push_back(std::move(ours));
  started->fds.push_back(std::move(errors_read));
  return {};
}

void Spawner::Reap(int host) {
  Child& child = children_[host];
  int status = 0;
  const pid_t reaped = waitpid(child.pid, &status, WNOHANG);
  // Its pidfd has told that it is over; who has taken its status does not matter.
  if (reaped != child.pid && !(reaped < 0 && errno == ECHILD)) return;
  children_.erase(host);
  Frame frame;
  frame.kind = FrameKind::kExited;
  frame.index = host;
  frame.number = status;
  Tell(std::move(frame));
}

void Spawner::Tell(Frame frame) {
  if (driver_gone_) return;
  told_.push_back(std::move(frame));
  SendTold();
}

void Spawner::SendTold() {
  while (!told_.empty()) {
    if (SendFrame(driver_.get(), told_.front()) == FrameResult::kWouldBlock) return;
    told_.pop_front();
  }
}

void Spawner::Kill(const Child& child, bool with_children) {
  syscall(SYS_pidfd_send_signal, child.pidfd.get(), SIGKILL, nullptr, 0);
  // It leads a group of its own, and keeps its number until we reap it. Never so with a daemon
  // whose ranks run: its shim must live on to end them.
  if (with_children) kill(-child.pid, SIGKILL);
}

void Spawner::KillAll() {
  for (auto& [host, child] : children_) {
    Kill(child, false);
    waitpid(child.pid, nullptr, 0);
  }
  children_.clear();
  look_.Kill();
  driver_gone_ = true;
}

}  // namespace

void RunSpawner(const SpawnerPlan& plan, Descriptor driver) {
  Spawner(plan, std::move(driver)).Run();
}

}  // namespace hvd::cli
