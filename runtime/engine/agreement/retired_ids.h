// SPDX-License-Identifier: Apache-2.0
// Which tensors' ids are given up when there are too many of them. The root picks; every leader
// understands a retired id until all below it have said that they do not use it any more. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/engine/agreement/tensor_table.h"

namespace hvd::rt {

class RetiredIds {
 public:
  // `tensors`: the leader's; borrowed. `children`: how many leaders report to this one.
  RetiredIds(TensorTable* tensors, int children) : tensors_(*tensors), children_(children) {}

  // The root's. The ids that are to be retired now: those of the tensors that have not been used
  // for longest, when there are more than `most`. `decided`: how many decisions there have been.
  std::vector<uint64_t> Pick(size_t most, uint64_t decided);

  // These are not used any more for what is said from now on. True if nobody below has to say so
  // first: they are forgotten.
  bool Retire(const std::vector<uint64_t>& ids);
  // A child says that no earlier id comes from it any more. True if it was the last: the ids are
  // forgotten.
  bool OnChildRetired();

 private:
  void Forget();

  TensorTable& tensors_;
  const int children_;
  std::vector<uint64_t> retiring_;
  int waiting_for_ = 0;   // children that may still use those ids
  uint64_t look_at_ = 0;  // decisions; when to look again
};

}  // namespace hvd::rt
