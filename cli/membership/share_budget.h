// SPDX-License-Identifier: Apache-2.0
// How many deaths a share of a host has between two new commits, before nobody is started there any
// more. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>

namespace hvd {

class ShareBudget {
 public:
  static constexpr int kDeaths = 3;

  // True when this death has used up the share's budget.
  bool Died(const std::string& host, int share) {
    int& deaths = deaths_[{host, share}];
    return ++deaths == kDeaths;
  }
  bool IsOut(const std::string& host, int share) const {
    const auto found = deaths_.find({host, share});
    return found != deaths_.end() && found->second >= kDeaths;
  }
  // The job gets on: what is left counts anew, what is used up stays so.
  void Committed() {
    std::erase_if(deaths_, [](const auto& entry) { return entry.second < kDeaths; });
  }
  // The host begins anew.
  void Renew(const std::string& host) {
    std::erase_if(deaths_, [&host](const auto& entry) { return entry.first.first == host; });
  }

 private:
  std::map<std::pair<std::string, int>, int> deaths_;  // by host's name and share
};

}  // namespace hvd
