// SPDX-License-Identifier: Apache-2.0
#include "base/process_end.h"

#include <string.h>
#include <sys/wait.h>

#include "absl/strings/str_cat.h"

namespace hvd {

std::string DescribeKill(int signal) {
  const char* name = sigdescr_np(signal);
  return absl::StrCat("was killed by signal ", signal, " (", name == nullptr ? "real-time" : name,
                      ")");
}

std::string NameSignal(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? absl::StrCat("signal ", signal) : absl::StrCat("SIG", name);
}

std::string DescribeEnd(int wait_status) {
  if (WIFSIGNALED(wait_status)) return DescribeKill(WTERMSIG(wait_status));
  return absl::StrCat("exited with code ", WEXITSTATUS(wait_status));
}

}  // namespace hvd
