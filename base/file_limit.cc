// SPDX-License-Identifier: Apache-2.0
#include "base/file_limit.h"

namespace hvd {

rlimit RaiseFileLimit() {
  rlimit before = {};
  if (getrlimit(RLIMIT_NOFILE, &before) != 0) return {RLIM_INFINITY, RLIM_INFINITY};
  const rlimit raised = {before.rlim_max, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

rlim_t MostFiles() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : RLIM_INFINITY;
}

}  // namespace hvd
