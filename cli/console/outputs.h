// SPDX-License-Identifier: Apache-2.0
// What the console must know of its stdout and stderr before it writes.
#pragma once

#include "cli/console/output_printer.h"

namespace hvd::cli {

OutputStyle StyleOf(int fd, bool timestamps);

// How wide a terminal is; 80 where it does not say.
int ColumnsOf(int fd);

// How many rows it has for us; 0: we are in its background, where a shell or another job writes.
int RowsOf(int fd);

// Whether stdout and stderr are the same file, pipe or terminal (2>&1).
bool OutputsAreOne();

}  // namespace hvd::cli
