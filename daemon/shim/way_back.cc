// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/way_back.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace hvd::daemon {
namespace {

bool BindIn(const std::string& base, WayBack* way) {
  std::string directory = base + "/hvd-XXXXXX";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (directory.size() + 3 > sizeof(address.sun_path)) return false;
  if (mkdtemp(directory.data()) == nullptr) return false;  // 0700
  const std::string path = directory + "/s";
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  way->listener.Reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool bound = bind(way->listener.get(), reinterpret_cast<const sockaddr*>(&address),
                          sizeof(address)) == 0 &&
                     chmod(path.c_str(), 0600) == 0 && listen(way->listener.get(), 128) == 0;
  if (bound) way->place.Reset(open(path.c_str(), O_PATH | O_CLOEXEC));
  unlink(path.c_str());
  rmdir(directory.c_str());
  return way->place.valid();
}

}  // namespace

WayBack MakeWayBack() {
  const char* chosen = getenv("TMPDIR");
  for (const char* base : {chosen, "/tmp", "/dev/shm", "/var/tmp"}) {
    WayBack way;
    if (base != nullptr && base[0] != '\0' && BindIn(base, &way)) return way;
  }
  return {};
}

}  // namespace hvd::daemon
