#include "cli/console_outputs.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hvd {

OutputStyle StyleOf(int fd, bool timestamps) {
  OutputStyle style;
  style.terminal = isatty(fd) != 0;
  const char* no_color = getenv("NO_COLOR");
  const char* terminal = getenv("TERM");
  style.color = style.terminal && (no_color == nullptr || *no_color == 0) &&
                (terminal == nullptr || strcmp(terminal, "dumb") != 0);
  style.timestamps = timestamps;
  return style;
}

bool OutputsAreOne() {
  struct stat out, err;
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
         out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

bool IsWritable(int fd) {
  pollfd now = {fd, POLLOUT, 0};
  return poll(&now, 1, 0) == 1;
}

}  // namespace hvd
