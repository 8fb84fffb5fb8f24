// SPDX-License-Identifier: Apache-2.0
// What is wrong with hosts for a while, or for good, though they live.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace hvd::elastic_simulator {

struct Trouble {
  struct Cut {
    std::string one, other;
    double until = 0;
  };
  std::vector<Cut> cuts;                    // no data passes between these
  std::map<std::string, double> bad_until;  // by host: the program fails there at its start

  bool IsCut(const std::string& one, const std::string& other, double now) const {
    return std::any_of(cuts.begin(), cuts.end(), [&](const Cut& cut) {
      return now < cut.until && std::minmax(cut.one, cut.other) == std::minmax(one, other);
    });
  }
  bool IsBad(const std::string& host, double now) const {
    const auto found = bad_until.find(host);
    return found != bad_until.end() && now < found->second;
  }
};

}  // namespace hvd::elastic_simulator
