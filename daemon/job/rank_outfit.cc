// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/rank_outfit.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file_limit.h"
#include "daemon/shim/exec_failure.h"
#include "proto/hello.h"
#include "proto/open_files.h"

namespace hvd::daemon {
namespace {

// errno says why.
absl::Status Failed(absl::string_view what) {
  const int error = errno;
  const std::string most =
      error == EMFILE ? absl::StrCat(" (hvdd may have ", MostFiles(), ")") : "";
  return absl::ResourceExhaustedError(
      absl::StrCat("hvdd cannot get ", what, ": ", strerrordesc_np(error), most, RemedyFor(error)));
}

bool MakePipe(Pipe* pipe) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe->read_end.Reset(ends[0]);
  pipe->write_end.Reset(ends[1]);
  return true;
}

absl::Status MakePipes(bool feeds, RankOutfit* outfit) {
  if (!MakePipe(&outfit->out) || !MakePipe(&outfit->err)) {
    return Failed("pipes for a rank's output");
  }
  if (!feeds) {
    outfit->in.read_end.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    return absl::OkStatus();
  }
  if (!MakePipe(&outfit->in)) return Failed("a pipe for a rank's stdin");
  fcntl(outfit->in.write_end.get(), F_SETFL, O_NONBLOCK);
  return absl::OkStatus();
}

absl::Status MakeDoor(RankOutfit* outfit) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Failed("a rank's socket");
  }
  outfit->door_here.Reset(ends[0]);
  outfit->door_there.Reset(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return absl::OkStatus();
}

absl::Status MakeToken(RankOutfit* outfit) {
  std::array<char, 16> random;
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return Failed("randomness for a rank's token");
  }
  outfit->token = absl::BytesToHexString(absl::string_view(random.data(), random.size()));
  return absl::OkStatus();
}

uint64_t InodeOf(int fd) {
  struct stat about {};
  fstat(fd, &about);
  return about.st_ino;
}

}  // namespace

absl::StatusOr<RankOutfit> OutfitFor(const v1::Seat& seat, const HostJob& job,
                                     const std::string& way_back) {
  RankOutfit outfit;
  absl::Status made = MakePipes(seat.stdin(), &outfit);
  if (made.ok()) made = MakeDoor(&outfit);
  if (made.ok()) made = MakeToken(&outfit);
  if (!made.ok()) return made;
  LinkName name;
  name.fd = kDoorFd;
  name.inode = InodeOf(outfit.door_there.get());
  name.token = outfit.token;
  name.path = way_back;
  SlotLink place;
  place.slot = static_cast<int>(seat.slot());
  place.share = job.ShareOf(seat);
  if (job.elastic()) place.member = seat.member();
  place.link = FormatLinkName(name);
  place.door_fd = kDoorFd;
  outfit.order = OrderToFd(OrderFor(place, job.context()));
  if (!outfit.order.valid()) return Failed("a memfd for a rank's environment");
  return outfit;
}

}  // namespace hvd::daemon
