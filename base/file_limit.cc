#include "base/file_limit.h"

#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

constexpr rlim_t kFilesPerHost = 2;  // the link and the remote shell's words
constexpr rlim_t kOtherFiles = 24;   // gRPC's, our own, the timeline

}  // namespace

rlimit RaiseFileLimit() {
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit raised = {before.rlim_max, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

absl::Status CheckFileLimit(size_t hosts) {
  rlimit limit = {};
  const rlim_t needed = hosts * kFilesPerHost + kOtherFiles;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a job of ", hosts, hosts == 1 ? " host" : " hosts", " needs ", needed, " open files, and ",
      limit.rlim_max, " are allowed here; raise the hard limit (ulimit -Hn)"));
}

}  // namespace hvd
