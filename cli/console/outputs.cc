// SPDX-License-Identifier: Apache-2.0
#include "cli/console/outputs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hvd::cli {

OutputStyle StyleOf(int fd, bool timestamps) {
  OutputStyle style;
  style.terminal = isatty(fd) != 0;
  const char* no_color = getenv("NO_COLOR");
  const char* terminal = getenv("TERM");
  style.redraws = style.terminal && (terminal == nullptr || strcmp(terminal, "dumb") != 0);
  style.color = style.redraws && (no_color == nullptr || *no_color == 0);
  style.timestamps = timestamps;
  return style;
}

int ColumnsOf(int fd) {
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

int RowsOf(int fd) {
  const pid_t foreground = tcgetpgrp(fd);  // none of a terminal that is not our own
  if (foreground >= 0 && foreground != getpgrp()) return 0;
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

bool OutputsAreOne() {
  struct stat out, err;
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
         out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

}  // namespace hvd::cli
