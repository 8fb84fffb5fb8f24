// SPDX-License-Identifier: Apache-2.0
// Between which hosts nothing passes: how many epochs in a row have ended for it. Pure.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace hvd::cli {

class BadLinks {
 public:
  // After so many failed epochs in a row, one of the two hosts is left out.
  static constexpr int kEpochs = 3;

  // An epoch has ended for this. Returns for how many in a row.
  int Failed(const std::string& one, const std::string& other) {
    return ++failed_[Key(one, other)];
  }
  // An epoch with both got on.
  void Works(const std::string& one, const std::string& other) { failed_.erase(Key(one, other)); }
  // From how many hosts this one is cut off, as far as it is known.
  int Of(const std::string& host) const;

 private:
  using Link = std::pair<std::string, std::string>;  // names, the smaller first
  static Link Key(const std::string& one, const std::string& other) {
    return std::minmax(one, other);
  }

  std::map<Link, int> failed_;
};

}  // namespace hvd::cli
