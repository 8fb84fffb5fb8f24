// SPDX-License-Identifier: Apache-2.0
// Threads or memory that this machine does not give end the driver in words, and not as a crash.
#pragma once

namespace hvd::cli {

// From now on, on any thread: what such an exception would abort ends with a verdict, sent over
// `console`. The caller keeps that descriptor open while the process lives.
void EndInWordsForWant(int console);

}  // namespace hvd::cli
