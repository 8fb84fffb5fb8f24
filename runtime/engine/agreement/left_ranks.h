// SPDX-License-Identifier: Apache-2.0
// The ranks that have left, as a host's leader knows them: they answer what they had asked for
// before, and nothing else. Pure.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/engine/agreement/agreement_message.h"
#include "runtime/engine/agreement/tensor_table.h"

namespace hvd::rt {

class LeftRanks {
 public:
  // `tensors`: the leader's; borrowed.
  explicit LeftRanks(const TensorTable* tensors) : tensors_(*tensors) {}

  // A rank of this source (LeaderCore) has left.
  void Add(int source, const LeftNote& note);
  // A tensor has been decided: whoever had asked for it has been answered.
  void Forget(const std::string& name);

  // Returns the names that a rank below `source` that has left is still to answer and that the
  // parent has not heard. Names that were reported to this leader and wait here for others are
  // among them. Names that were reported upwards are not: they may be decided there by now, and
  // nothing more is to be said of them. `names`: the same as the source says it, which leaves out
  // the names that it has reported to this leader.
  std::vector<std::string> StillToReport(int source, const std::vector<std::string>& names) const;

  // A rank (global) that has left and can never answer this tensor, which some have reported; -1:
  // there is none.
  int WhoCannotAnswer(const LeaderTensor& tensor) const;

 private:
  struct Left {
    int source = 0;
    int rank = 0;
    std::unordered_set<std::string> names;  // that it still answers
  };

  const TensorTable& tensors_;
  std::vector<Left> lefts_;
};

}  // namespace hvd::rt
