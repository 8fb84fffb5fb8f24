#include "runtime/engine/config.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "runtime/session/identity.h"

namespace hvd {
namespace {

std::string Text(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

absl::StatusOr<EngineConfig> ReadConfig() {
  EngineConfig config;
  auto link = FindLink([](const char* name) { return getenv(name); });
  if (!link.ok()) return link.status();
  config.link = *link;
  if (const char* cores = getenv("HVD_HOST_CORES")) {
    const auto [end, error] = std::from_chars(cores, cores + strlen(cores), config.host_cores);
    if (error != std::errc() || *end != 0 || config.host_cores < 1) {
      return absl::InvalidArgumentError(std::string("HVD_HOST_CORES is '") + cores +
                                        "'; it must be a number of cores, at least 1");
    }
  }
  config.net_devices = Text("HVD_NET_DEVICES");
  if (config.net_devices.empty()) config.net_devices = Text("UCX_NET_DEVICES");
  config.tls = Text("UCX_TLS");
  config.ucx_log_level = Text("UCX_LOG_LEVEL");
  return config;
}

}  // namespace hvd
