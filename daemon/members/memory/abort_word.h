// SPDX-License-Identifier: Apache-2.0
// What a page says of its end. Plain values.
#pragma once

#include <string>

namespace hvd::daemon {

// Why an epoch was aborted, as its ranks told one another.
struct AbortWord {
  std::string cause;   // empty: it was not
  int rank = -1;       // the rank whose doing it was (AbortCause); a worker's word
  int unreached = -1;  // as of AbortCause; a worker's word
};

}  // namespace hvd::daemon
