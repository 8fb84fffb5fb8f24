// SPDX-License-Identifier: Apache-2.0
// How often what happened, over all runs: by it is seen that every fault really comes to pass.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hvd::elastic_simulator {

class Counts {
 public:
  void Count(const std::string& what, uint64_t times = 1) { counts_[what] += times; }
  void Add(const Counts& more) {
    for (const auto& [what, times] : more.counts_) counts_[what] += times;
  }
  uint64_t Of(const std::string& what) const {
    const auto found = counts_.find(what);
    return found == counts_.end() ? 0 : found->second;
  }
  const std::map<std::string, uint64_t>& all() const { return counts_; }

 private:
  std::map<std::string, uint64_t> counts_;
};

}  // namespace hvd::elastic_simulator
