// SPDX-License-Identifier: Apache-2.0
#include "cli/front/bounded_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "hostfile/host_slots.h"

namespace hvd::cli {
namespace {

constexpr int kPatienceMs = 10000;

absl::Status Unreadable(const std::string& path, const char* reason) {
  return absl::InvalidArgumentError(absl::StrCat(Printable(path), " cannot be read: ", reason));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

absl::StatusOr<std::string> ReadBoundedFile(const std::string& path) {
  // Without waiting: a FIFO that nobody writes to would hold hvdrun for ever.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return Unreadable(path, strerror(errno));
  std::string text;
  std::array<char, 64 << 10> buffer;
  while (text.size() <= kMaxHostfileBytes) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got == 0) break;
    if (got > 0) {
      text.append(buffer.data(), static_cast<size_t>(got));
    } else if (errno == EAGAIN) {
      pollfd waiting = {file.get(), POLLIN, 0};
      if (poll(&waiting, 1, kPatienceMs) == 0) return Unreadable(path, "nothing comes from it");
    } else if (errno != EINTR) {
      return Unreadable(path, strerror(errno));
    }
  }
  return text;
}

}  // namespace hvd::cli
