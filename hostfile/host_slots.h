// SPDX-License-Identifier: Apache-2.0
// Host grammar: -H lists and hostfiles as Open MPI, MPICH, Horovod, DeepSpeed and ClusterShell
// write them. Pure: text in, values out. See README.md for the grammar.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hvd {

// Longer texts are refused; whoever reads a hostfile need not read more than this and one byte.
inline constexpr size_t kMaxHostfileBytes = size_t{16} << 20;

// One host as the user wrote it; repeated mentions are already merged, in order of first mention.
struct HostSlots {
  std::string name;  // host name, IPv4, or IPv6 without its brackets
  std::string user;  // empty: ssh's own choice
  int port = 0;      // 0: ssh's own choice
  int slots = 1;
  int max_slots = 0;  // 0: not stated
  std::string where;  // "hosts.txt:3", for messages
};

// Parses the value of -H. `source` names it in messages ("-H"). InvalidArgument carries the whole
// message: source:line:column, the line, a caret and a suggestion. A mention that states no slots
// has `unstated` ones, or as many of them as its max_slots allow.
absl::StatusOr<std::vector<HostSlots>> ParseHostList(std::string_view text, std::string_view source,
                                                     int unstated = 1);

// Parses a hostfile's text. `source` is its path. NotFound: no host is named there.
absl::StatusOr<std::vector<HostSlots>> ParseHostfile(std::string_view text, std::string_view source,
                                                     int unstated = 1);

}  // namespace hvd
