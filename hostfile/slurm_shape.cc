// SPDX-License-Identifier: Apache-2.0
#include "hostfile/slurm_shape.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "hostfile/host_item.h"
#include "hostfile/nodeset.h"

namespace hvd {
namespace {

// "3" or "2(x3)". False: neither.
bool ParsePart(absl::string_view part, int* tasks, int* nodes) {
  const size_t open = part.find("(x");
  *nodes = 1;
  if (open != part.npos) {
    absl::string_view count = part.substr(open + 2);
    if (!absl::ConsumeSuffix(&count, ")") || !absl::SimpleAtoi(count, nodes)) return false;
  }
  return absl::SimpleAtoi(part.substr(0, open), tasks) && *tasks >= 0 && *tasks <= kMaxRanks &&
         *nodes >= 1 && *nodes <= kMaxHosts;
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseTasksPerNode(absl::string_view text,
                                                   absl::string_view source) {
  std::vector<int> all;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int tasks = 0, nodes = 0;
    if (!ParsePart(part, &tasks, &nodes) || all.size() + nodes > kMaxHosts) {
      return absl::InvalidArgumentError(absl::StrCat(
          "$", source, " is '", Printable({text.data(), text.size()}, 200),
          "', which Slurm does not write (2(x3),1): ", "give the hosts by -H or --hostfile"));
    }
    all.insert(all.end(), nodes, tasks);
  }
  return all;
}

}  // namespace hvd
