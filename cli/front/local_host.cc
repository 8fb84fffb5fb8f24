// SPDX-License-Identifier: Apache-2.0
#include "cli/front/local_host.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace hvd::cli {
namespace {

// One spelling an address: without zone, compressed as inet_ntop does. Empty: not an address.
std::string CanonicalAddress(const std::string& text) {
  const std::string plain = text.substr(0, text.find('%'));
  char out[INET6_ADDRSTRLEN] = "";
  in6_addr v6;
  in_addr v4;
  if (inet_pton(AF_INET, plain.c_str(), &v4) == 1) inet_ntop(AF_INET, &v4, out, sizeof out);
  if (inet_pton(AF_INET6, plain.c_str(), &v6) == 1) inet_ntop(AF_INET6, &v6, out, sizeof out);
  return out;
}

bool IsOwnAddress(const std::string& address, const FrontWorld& world) {
  if (absl::StartsWith(address, "127.") || address == "::1") return true;
  return std::any_of(world.addresses.begin(), world.addresses.end(),
                     [&](const std::string& own) { return CanonicalAddress(own) == address; });
}

std::string FirstLabel(const std::string& name) { return name.substr(0, name.find('.')); }

bool IsOwnName(const std::string& host, const FrontWorld& world) {
  const std::string name = absl::AsciiStrToLower(host);
  const std::string own = absl::AsciiStrToLower(world.host_name);
  if (name == "localhost" || name == "localhost.localdomain") return true;
  if (own.empty() || FirstLabel(name) != FirstLabel(own)) return false;
  if (name == own || name == FirstLabel(own)) return true;
  return world.full_host_name && name == absl::AsciiStrToLower(world.full_host_name());
}

}  // namespace

bool IsLocalHost(const HostSlots& host, const FrontWorld& world) {
  if (host.port != 0) return false;
  const std::string address = CanonicalAddress(host.name);
  const bool own = address.empty() ? IsOwnName(host.name, world) : IsOwnAddress(address, world);
  if (!own || host.user.empty()) return own;
  return world.user_name && host.user == world.user_name();
}

}  // namespace hvd::cli
