// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_a/channel.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::daemon {
namespace {

constexpr int kOutOfTheWay = 10;

absl::Status Failed(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerrordesc_np(errno)));
}

bool WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data.remove_prefix(n);
  }
  return true;
}

bool SameSocket(int a, int b) {
  struct stat first {
  }, second{};
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && S_ISSOCK(first.st_mode) &&
         first.st_ino == second.st_ino && first.st_dev == second.st_dev;
}

// Ends with either side; the other pump sees its half end and follows.
void Pump(const char* name, int from, int to) {
  pthread_setname_np(pthread_self(), name);
  char buffer[64 << 10];
  while (true) {
    const ssize_t n = read(from, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || !WriteAll(to, {buffer, static_cast<size_t>(n)})) break;
  }
  if (shutdown(to, SHUT_WR) != 0) close(to);  // a pipe has no halves
}

}  // namespace

absl::StatusOr<Descriptor> TakeConnection(std::string_view hello) {
  if (!WriteAll(1, hello)) return Failed("writing the hello line to stdout");
  const bool one_socket = SameSocket(0, 1);
  Descriptor in(fcntl(0, F_DUPFD_CLOEXEC, kOutOfTheWay));
  Descriptor out(one_socket ? -1 : fcntl(1, F_DUPFD_CLOEXEC, kOutOfTheWay));
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!in.valid() || dup2(null.get(), 0) < 0 || dup2(null.get(), 1) < 0) {
    return Failed("moving stdin and stdout out of the way");
  }
  if (one_socket) return in;

  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Failed("a socket pair");
  const int far = ends[1];
  std::thread(Pump, "hvdd-pump-in", in.Release(), far).detach();
  std::thread(Pump, "hvdd-pump-out", far, out.Release()).detach();
  return Descriptor(ends[0]);
}

}  // namespace hvd::daemon
