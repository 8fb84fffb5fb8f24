// SPDX-License-Identifier: Apache-2.0
// hvdrun's exit codes besides the culprit's own (or 128 + its signal).
#pragma once

namespace hvd {

inline constexpr int kExitOk = 0;
// --check-build: the installation lacks its library. A job: its output, or a file that was asked
// for, could not all be written.
inline constexpr int kExitBroken = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitTimeout = 124;        // a time limit ran out, as timeout(1) says it
inline constexpr int kExitLauncher = 125;       // a lost host or a failed launch
inline constexpr int kExitNotExecutable = 126;  // the command is there but cannot run
inline constexpr int kExitNotFound = 127;       // no such command
inline constexpr int kExitInterrupt = 130;      // Ctrl-C
inline constexpr int kExitTerm = 143;           // SIGTERM

}  // namespace hvd
