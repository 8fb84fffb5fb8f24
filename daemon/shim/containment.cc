// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/containment.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "daemon/shim/process_tree.h"

namespace hvd::daemon {
namespace {

absl::Status Failed(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerrordesc_np(errno)));
}

bool WriteText(const std::string& path, const std::string& text) {
  const Descriptor fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() &&
         write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Maps the own user and group to themselves: everything looks as before, files stay one's own.
absl::Status MapOwnUser(const OwnUser& own) {
  if (!WriteText("/proc/self/setgroups", "deny")) return Failed("setgroups of the user namespace");
  if (!WriteText("/proc/self/uid_map", absl::StrCat(own.user, " ", own.user, " 1"))) {
    return Failed("uid_map of the user namespace");
  }
  if (!WriteText("/proc/self/gid_map", absl::StrCat(own.group, " ", own.group, " 1"))) {
    return Failed("gid_map of the user namespace");
  }
  return absl::OkStatus();
}

// Workers reach the way back through /proc/1/fd, which the kernel grants only to those who hold all
// of init's capabilities; theirs end at exec, so init's end here.
void DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  syscall(SYS_capset, &header, none);
}

absl::Status EnterNamespace(const std::optional<OwnUser>& own_user) {
  if (own_user.has_value()) {
    absl::Status mapped = MapOwnUser(*own_user);
    if (!mapped.ok()) return mapped;
  }
  char self[32] = {};  // this process as the outer /proc names it
  if (readlink("/proc/self", self, sizeof(self) - 1) < 0) return Failed("/proc/self");
  // Automounted homes must keep coming in, ours must not go out.
  if (mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return Failed("slave mounts");
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return Failed("a fresh /proc");
  }
  // Names made from pids in the shared /tmp then do not collide with other jobs'. Nice to have.
  WriteText("/proc/sys/kernel/ns_last_pid", self);
  if (own_user.has_value()) DropCapabilities();
  // After the last change of credentials, which would clear it. hvdd's main thread is the parent.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Failed("the parent-death signal");
  return absl::OkStatus();
}

// The directory of this process's own cgroup in the v2 hierarchy; empty: none.
std::string OwnCgroup() {
  std::string own, line;
  std::ifstream cgroups("/proc/self/cgroup");
  while (std::getline(cgroups, line)) {
    if (line.rfind("0::", 0) == 0) own = line.substr(3);
  }
  std::ifstream mounts("/proc/self/mountinfo");
  while (!own.empty() && std::getline(mounts, line)) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    if (root != "/" && own.rfind(root, 0) == 0) own = own.substr(root.size());
    return point + (own == "/" ? "" : own);
  }
  return "";
}

bool WaitGone(int pid, int milliseconds) {
  const Descriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd gone{pidfd.get(), POLLIN, 0};
  return pidfd.valid() && poll(&gone, 1, milliseconds) == 1;
}

// Tried, not assumed: a child is moved in and killed through the cgroup.
absl::Status TryCgroup(const std::string& directory) {
  int hold[2];
  if (pipe2(hold, O_CLOEXEC) != 0) return Failed("a pipe");
  const Descriptor read_end(hold[0]);
  Descriptor write_end(hold[1]);
  const pid_t child = fork();
  if (child < 0) return Failed("fork");
  if (child == 0) {
    write_end.Reset();
    char byte;
    [[maybe_unused]] const ssize_t n = read(read_end.get(), &byte, 1);
    _exit(0);
  }
  const bool moved = WriteText(directory + "/cgroup.procs", std::to_string(child));
  absl::Status move_status = moved ? absl::OkStatus() : Failed("moving into " + directory);
  const bool killed = moved && WriteText(directory + "/cgroup.kill", "1") && WaitGone(child, 1000);
  write_end.Reset();  // ends the child if the kill did not
  int status = 0;
  waitpid(child, &status, 0);
  if (!moved) return move_status;
  if (!killed || !WIFSIGNALED(status)) {
    return absl::UnavailableError(absl::StrCat("cgroup.kill of ", directory, " does not kill"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> EnterCgroup() {
  const std::string own = OwnCgroup();
  if (own.empty()) return absl::UnavailableError("no cgroup v2 hierarchy is mounted");
  std::string directory = own + "/hvd-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return Failed("making a cgroup in " + own);
  absl::Status tried = TryCgroup(directory);
  if (!tried.ok()) {
    EndCgroup(directory);
    return tried;
  }
  return directory;
}

}  // namespace

absl::string_view LevelName(ContainmentLevel level) {
  switch (level) {
    case ContainmentLevel::kAuto:
      return "auto";
    case ContainmentLevel::kNamespace:
      return "namespace";
    case ContainmentLevel::kCgroup:
      return "cgroup";
    case ContainmentLevel::kSubreaper:
      return "subreaper";
  }
  return "unknown";
}

bool ParseLevel(absl::string_view text, ContainmentLevel* level) {
  for (int i = 0; i <= 3; ++i) {
    *level = static_cast<ContainmentLevel>(i);
    if (text == LevelName(*level)) return true;
  }
  return false;
}

absl::StatusOr<Containment> Containment::Enter(ContainmentLevel level,
                                               const std::optional<OwnUser>& own_user) {
  Containment containment;
  containment.level_ = level;
  // Nobody else could tell a shim that is stopped that its hvdd is dead.
  if (prctl(PR_SET_PDEATHSIG, SIGCONT) != 0) return Failed("the parent-death signal");
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return Failed("becoming a subreaper");
  if (level == ContainmentLevel::kNamespace) {
    absl::Status entered = EnterNamespace(own_user);
    if (!entered.ok()) return entered;
  }
  if (level == ContainmentLevel::kCgroup) {
    absl::StatusOr<std::string> directory = EnterCgroup();
    if (!directory.ok()) return directory.status();
    containment.cgroup_ = *std::move(directory);
  }
  return containment;
}

void Containment::Take(int pid) const {
  if (!cgroup_.empty()) WriteText(cgroup_ + "/cgroup.procs", std::to_string(pid));
}

void Containment::KillAll(const std::string& mark) const {
  if (level_ == ContainmentLevel::kNamespace) {
    kill(-1, SIGKILL);  // as init: everything in the namespace, and no fork slips through
    return;
  }
  if (!cgroup_.empty()) WriteText(cgroup_ + "/cgroup.kill", "1");
  FreezeAndKill(getpid(), mark);
}

int Containment::CountLiving(const std::string& mark) const {
  return hvd::daemon::CountLiving(getpid(), level_ == ContainmentLevel::kNamespace ? "" : mark);
}

void Containment::Leave() const {
  if (!cgroup_.empty()) EndCgroup(cgroup_);
}

void EndCgroup(const std::string& directory) {
  WriteText(directory + "/cgroup.kill", "1");
  // rmdir is refused while a killed process is not gone yet.
  for (int i = 0; i < 200 && rmdir(directory.c_str()) != 0 && errno == EBUSY; ++i) {
    poll(nullptr, 0, 5);
  }
}

}  // namespace hvd::daemon
