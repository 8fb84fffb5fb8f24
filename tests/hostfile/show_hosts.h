// SPDX-License-Identifier: Apache-2.0
// Hosts as one readable line, so that a test says what it expects on one line too.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hostfile/host_slots.h"

namespace hvd {

// "u@a:2222 x4 max 8, b x1"; an error's message when there is one.
inline std::string Show(const absl::StatusOr<std::vector<HostSlots>>& hosts) {
  if (!hosts.ok()) return std::string(hosts.status().message());
  std::string text;
  for (const HostSlots& host : *hosts) {
    if (!text.empty()) text += ", ";
    if (!host.user.empty()) text += host.user + "@";
    text += host.name;
    if (host.port != 0) text += ":" + std::to_string(host.port);
    text += " x" + std::to_string(host.slots);
    if (host.max_slots != 0) text += " max " + std::to_string(host.max_slots);
  }
  return text;
}

inline std::string ShowList(const std::string& text) { return Show(ParseHostList(text, "-H")); }
inline std::string ShowFile(const std::string& text) { return Show(ParseHostfile(text, "hosts")); }

}  // namespace hvd
