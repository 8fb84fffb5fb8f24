// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/helper_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

constexpr int kLifeFd = 3;

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// A program may have blocked or ignored what these need.
void TakeDefaults(posix_spawnattr_t* attributes) {
  sigset_t none, all;
  sigemptyset(&none);
  sigemptyset(&all);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&all, number);
  }
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setsigdefault(attributes, &all);
  posix_spawnattr_setflags(attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

// A descriptor that is at its place already would keep its mark to be closed.
void Place(int fd, int at, posix_spawn_file_actions_t* actions) {
  if (fd >= 0) posix_spawn_file_actions_adddup2(actions, fd, at);
}

}  // namespace

absl::Status StartHelper(const HelperOrder& order) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&actions);
  TakeDefaults(&attributes);
  if (order.in < 0) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  Place(order.in, STDIN_FILENO, &actions);
  Place(order.out, STDOUT_FILENO, &actions);
  Place(order.life, kLifeFd, &actions);
  posix_spawn_file_actions_addclosefrom_np(&actions, order.life < 0 ? kLifeFd : kLifeFd + 1);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, order.argv[0].c_str(), &actions, &attributes,
                                 Pointers(order.argv).data(), Pointers(order.environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot start ", order.argv[0], ", which joins the launcher's processes: ", strerror(error),
        "; is hvd's installation complete?"));
  }
  int status = 0;
  pid_t ended;
  do {
    ended = waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  // Where the program ignores SIGCHLD, the kernel has taken the status.
  if (ended < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(order.argv[0], ", which joins the launcher's processes, has ended with ",
                   WIFEXITED(status) ? absl::StrCat("exit code ", WEXITSTATUS(status))
                                     : absl::StrCat("signal ", WTERMSIG(status)),
                   "; its words are on stderr"));
}

std::string ProgramBeside(const std::string& library, const std::string& name) {
  const size_t slash = library.find_last_of('/');
  if (slash == std::string::npos) return name;
  for (const char* const place : {"/../bin/", "/"}) {
    std::string path = absl::StrCat(library.substr(0, slash), place, name);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return name;
}

}  // namespace hvd::rt
