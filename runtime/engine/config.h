// All that libhvd reads from the environment, read once at hvd_init. The only getenv of the
// runtime.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/hello.h"

namespace hvd {

struct EngineConfig {
  std::optional<LinkName> link;  // nothing: a job of one rank
  int host_cores = 0;            // cores that the ranks of this host share; 0: not said, count them
  // HVD_NET_DEVICES, else UCX_NET_DEVICES; UCX_TLS; UCX_LOG_LEVEL. Empty: chosen.
  std::string net_devices, tls, ucx_log_level;
};

absl::StatusOr<EngineConfig> ReadConfig();

}  // namespace hvd
