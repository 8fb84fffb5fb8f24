// SPDX-License-Identifier: Apache-2.0
// A closed stdin, stdout or stderr is /dev/null, before anything of ours gets its number: gRPC
// opens descriptors of its own already in its static initialisers, and a rank would wait for ever
// for the end of such a "stdin". Therefore this runs before all initialisers, those of shared
// libraries included, and by bare system calls.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/exit_code.h"

namespace hvd::cli {
namespace {

// No sanitizer has been set up yet.
__attribute__((no_sanitize("address", "thread", "undefined"))) void HoldStandardDescriptors() {
  long fd;
  do {
    fd = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd < 0) _exit(kExitLauncher);
  syscall(SYS_close, fd);
}

__attribute__((section(".preinit_array"),
               used)) void (*const first_of_all)() = HoldStandardDescriptors;

}  // namespace
}  // namespace hvd::cli
