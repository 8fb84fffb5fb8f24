// What the console must know of its stdout and stderr before it writes.
#pragma once

#include "cli/output_printer.h"

namespace hvd {

OutputStyle StyleOf(int fd, bool timestamps);

// Whether stdout and stderr are the same file, pipe or terminal (2>&1).
bool OutputsAreOne();

// Whether a page may be written without waiting, as of now.
bool IsWritable(int fd);

}  // namespace hvd
