// All that libhvd reads from the environment, read once at hvd_init. The only getenv of the
// runtime.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "proto/hello.h"

namespace hvd {

struct EngineConfig {
  std::optional<LinkName> link;  // nothing: a job of one rank
  int host_cores = 0;            // cores that the ranks of this host share; 0: not said, count them
};

absl::StatusOr<EngineConfig> ReadConfig();

}  // namespace hvd
