// SPDX-License-Identifier: Apache-2.0
#include "cli/reach/prompt_sockets.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hvd::cli {
namespace {

// The option is refused by whatever is no TCP connection.
bool MakePrompt(int fd) {
  const int on = 1;
  return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0;
}

bool IsSocket(const std::string& link) {
  char target[16] = {};
  const ssize_t length = readlink(link.c_str(), target, sizeof(target) - 1);
  return length > 0 && absl::string_view(target, length).substr(0, 7) == "socket:";
}

}  // namespace

int MakeSocketsPrompt(pid_t child, const Descriptor& pidfd) {
  const std::string folder = absl::StrCat("/proc/", child, "/fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(opendir(folder.c_str()), closedir);
  if (listed == nullptr) return 0;
  int prompt = 0;
  while (const dirent* const entry = readdir(listed.get())) {
    int number = 0;
    if (!absl::SimpleAtoi(entry->d_name, &number)) continue;
    if (!IsSocket(absl::StrCat(folder, "/", number))) continue;
    // A second descriptor of the child's own connection, which has the option as long as it lives.
    const Descriptor theirs(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), number, 0)));
    if (theirs.valid() && MakePrompt(theirs.get())) ++prompt;
  }
  return prompt;
}

}  // namespace hvd::cli
