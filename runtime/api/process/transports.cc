// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/process/transports.h"

#include <cstdio>
#include <cstring>

#include "proto/hmac_sha256.h"
#include "runtime/transport/tcp/tcp_transport.h"
#include "runtime/transport/transport_choice.h"
#include "runtime/transport/ucx/ucx_transport.h"

namespace hvd::rt {
namespace {

absl::StatusOr<std::unique_ptr<Transport>> MakeTransport(const EngineConfig& config,
                                                         const TransportPlace& place) {
  const std::vector<std::string> ports = ListRdmaPorts();
  // UCX is not even looked for where nothing could need it.
  const bool has_ucx = config.transport.empty() && !ports.empty() && !UcxVersion().empty();
  const TransportChoice choice =
      ChooseTransport({config.transport, config.net_devices}, {{}, ports}, has_ucx);
  if (place.rank == 0 && config.log_level <= LogLevel::kInfo) {
    fprintf(stderr, "hvd: transport between hosts: %s (%s)\n", choice.kind.c_str(),
            choice.reason.c_str());
  }
  if (choice.kind == "tcp") {
    return MakeTcpTransport({.secret = place.token,
                             .rank = place.rank,
                             .size = place.size,
                             .net_devices = config.net_devices,
                             .reached_at = config.reached_at,
                             .reached_from = config.reached_from});
  }
  UcxOptions options;
  // UCX sends it in the clear, so it must not be the secret.
  const Sha256Digest token = HmacSha256(place.token, "hvd ucx: the token of messages");
  std::memcpy(&options.token, token.data(), sizeof(options.token));
  options.rank = place.rank;
  options.size = place.size;
  options.net_devices = config.net_devices;
  options.tls = config.tls;
  options.log_level = config.ucx_log_level;
  return MakeUcxTransport(options);
}

}  // namespace

TransportFactory TransportsFor(const EngineConfig& config) {
  return [config](const TransportPlace& place) { return MakeTransport(config, place); };
}

}  // namespace hvd::rt
