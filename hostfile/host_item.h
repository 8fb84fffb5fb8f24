// SPDX-License-Identifier: Apache-2.0
// One mention of a host, or of a nodeset of hosts, as it stands in a list or a hostfile.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/source_error.h"

namespace hvd {

// More ranks than this in one job, and so more slots on one host, are refused.
inline constexpr int kMaxRanks = 65536;

struct HostItem {
  absl::string_view word;          // as written, in the line's text
  std::vector<std::string> names;  // at least one
  std::string user;                // empty: not stated
  int port = 0;                    // 0: not stated
  int slots = 0;                   // 0: not stated
  int max_slots = 0;               // 0: not stated
};

absl::Status CheckUser(const SourceLine& line, absl::string_view name);

// "[user@]name[:slots]", the name a host's, an IPv4's, a nodeset or an IPv6 in brackets. `word`
// must lie in line.text().
absl::StatusOr<HostItem> ParseHostItem(const SourceLine& line, absl::string_view word);

// "item key=value ...", a hostfile's line that is not blank.
absl::StatusOr<HostItem> ParseHostLine(const SourceLine& line);

}  // namespace hvd
