// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"

namespace hvd {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::Status Refused(const std::string& why) { return absl::PermissionDeniedError(why); }
absl::Status SystemError() { return absl::UnavailableError(strerror(errno)); }

// The owner of a directory decides what lies in it.
bool IsTrusted(uid_t owner, int directory) {
  struct stat about;
  return owner == geteuid() || (fstat(directory, &about) == 0 && owner == about.st_uid);
}

std::string AnotherUsers(const std::string& what, uid_t owner) {
  return absl::StrCat(what, " belongs to another user (uid ", owner, ")");
}

// Opens the target of the symbolic link that `link` is, seen from its directory.
absl::StatusOr<Fd> Follow(int directory, const Fd& link, const std::string& name) {
  struct stat about;
  if (fstat(link.get(), &about) != 0) return SystemError();
  if (about.st_uid != 0 && !IsTrusted(about.st_uid, directory)) {
    return Refused(AnotherUsers(absl::StrCat("the symbolic link ", Printable(name)), about.st_uid));
  }
  char target[PATH_MAX] = {};
  if (readlinkat(link.get(), "", target, sizeof(target) - 1) < 0) return SystemError();
  Fd found(openat(directory, target, O_PATH | O_CLOEXEC));
  if (found.get() < 0) return SystemError();
  return found;
}

absl::StatusOr<Fd> Enter(int directory, const std::string& name, bool make) {
  constexpr int kFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  Fd found(openat(directory, name.c_str(), kFlags));
  if (found.get() < 0 && errno == ENOENT && make) {
    if (mkdirat(directory, name.c_str(), 0700) != 0 && errno != EEXIST) return SystemError();
    found = Fd(openat(directory, name.c_str(), kFlags));
  }
  struct stat about;
  if (found.get() < 0 || fstat(found.get(), &about) != 0) return SystemError();
  if (!S_ISLNK(about.st_mode)) return found;
  return Follow(directory, found, name);
}

}  // namespace

absl::StatusOr<int> OpenOwnDirectory(const std::string& path, bool make) {
  Fd at(open(!path.empty() && path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) return SystemError();
  const std::vector<std::string> names = absl::StrSplit(path, '/', absl::SkipEmpty());
  for (const std::string& name : names) {
    absl::StatusOr<Fd> next = Enter(at.get(), name, make);
    if (!next.ok()) return next.status();
    at = *std::move(next);
  }
  struct stat about;
  if (fstat(at.get(), &about) == 0 && S_ISDIR(about.st_mode)) return at.Release();
  errno = ENOTDIR;
  return SystemError();
}

absl::StatusOr<int> OpenOwnSubdirectory(int directory, const std::string& name) {
  const bool made = mkdirat(directory, name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return SystemError();
  Fd found(openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat about;
  if (found.get() < 0 || fstat(found.get(), &about) != 0) return SystemError();
  if (S_ISLNK(about.st_mode)) return Refused(absl::StrCat(Printable(name), " is a symbolic link"));
  if (!S_ISDIR(about.st_mode)) return Refused(absl::StrCat(Printable(name), " is no directory"));
  // Made just now, it is what this file system gives us, under whatever owner.
  if (!made && !IsTrusted(about.st_uid, directory)) {
    return Refused(AnotherUsers(Printable(name), about.st_uid));
  }
  return found.Release();
}

absl::StatusOr<int> OpenOwnFile(int directory, const std::string& name) {
  // Without waiting: a FIFO that nobody reads would hold the caller for ever.
  constexpr int kFlags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  Fd made(openat(directory, name.c_str(), kFlags | O_CREAT | O_EXCL, 0600));
  if (made.get() >= 0) return made.Release();
  if (errno != EEXIST) return SystemError();
  Fd found(openat(directory, name.c_str(), kFlags));
  if (found.get() < 0 && errno == ELOOP) return Refused("it is a symbolic link");
  if (found.get() < 0 && errno == ENXIO) return Refused("it is no regular file");
  struct stat about;
  if (found.get() < 0 || fstat(found.get(), &about) != 0) return SystemError();
  if (!S_ISREG(about.st_mode)) return Refused("it is no regular file");
  if (!IsTrusted(about.st_uid, directory)) return Refused(AnotherUsers("it", about.st_uid));
  if (about.st_nlink > 1) return Refused("it has more than one name (hard links)");
  return found.Release();
}

}  // namespace hvd
