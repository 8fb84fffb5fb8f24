#include "daemon/shim/remedy.h"

#include <cerrno>

namespace hvd {

absl::string_view RemedyFor(int error) {
  switch (error) {
    case EMFILE:
      return "; raise the hard limit of open files there (ulimit -Hn)";
    case EAGAIN:
      return "; look at the limit of processes (ulimit -u, the cgroup's pids.max)";
    case EFBIG:
      return "; raise the limit of files' sizes there (ulimit -f)";
    case ENOMEM:
      return "; look at the memory that is free there, and its limit (ulimit -v)";
    default:
      return "";
  }
}

}  // namespace hvd
