// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/process_set.h"

namespace hvd::rt {

std::string Numbers(const std::vector<int>& ranks) {
  std::string text = "[";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(ranks[i]);
  return text + "]";
}

std::string Describe(const ProcessSet& set) {
  return "process set " + std::to_string(set.id) + " " + Numbers(set.ranks);
}

}  // namespace hvd::rt
