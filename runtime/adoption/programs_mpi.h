// SPDX-License-Identifier: Apache-2.0
// The program's own MPI, if it has one. Thread-safe.
#pragma once

namespace hvd::rt {

// Whether it has begun: it has then introduced the process to the launcher, and takes the process's
// leave itself, or has done so.
bool ProgramsMpiHasBegun();

}  // namespace hvd::rt
