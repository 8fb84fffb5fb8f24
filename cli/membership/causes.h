// SPDX-License-Identifier: Apache-2.0
// Why an epoch ended: what comes first explains what follows it. Pure.
#pragma once

#include <string>
#include <vector>

namespace hvd::cli {

struct Cause {
  // A death, one after the abort, a rank's word.
  enum Order { kEnd, kFollows, kWord } order = kEnd;
  std::string text;
};

class Causes {
 public:
  // The same end is told twice, once with more words.
  void Add(const Cause& cause);
  // Deaths first; what ranks have said of one another is no news then.
  std::vector<std::string> Say() const;
  // Whether one is of this host.
  bool Tell(const std::string& host) const;
  bool empty() const { return causes_.empty(); }
  void Clear() { causes_.clear(); }

 private:
  std::vector<Cause> causes_;
};

}  // namespace hvd::cli
