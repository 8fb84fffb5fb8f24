// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/left_ranks.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

using Names = std::vector<std::string>;

Names Sorted(Names names) {
  std::sort(names.begin(), names.end());
  return names;
}

// Returns a tensor of this kind that source 1 has reported.
LeaderTensor& Reported(TensorTable* tensors, const char* name,
                       RequestKind kind = RequestKind::kAllreduce) {
  LeaderTensor& tensor = tensors->FindOrCreate(name);
  tensor.present = 1u << 1;
  tensor.all_same = false;
  tensor.report.first.signature.kind = kind;
  return tensor;
}

TEST_CASE("a rank that has left cannot answer what it had not asked for") {
  TensorTable tensors;
  LeftRanks left(&tensors);
  LeaderTensor& x = Reported(&tensors, "x");
  LeaderTensor& y = Reported(&tensors, "y");
  CHECK(left.WhoCannotAnswer(x) == -1);
  left.Add(2, {7, {"x"}});
  CHECK(left.WhoCannotAnswer(x) == -1);
  CHECK(left.WhoCannotAnswer(y) == 7);
  // Its source has reported for all its ranks.
  y.present |= 1u << 2;
  CHECK(left.WhoCannotAnswer(y) == -1);
  // The next time it does not come.
  left.Forget("x");
  CHECK(left.WhoCannotAnswer(x) == 7);
}

TEST_CASE("nobody waits in vain for what nobody has reported, nor in the leave itself") {
  TensorTable tensors;
  LeftRanks left(&tensors);
  left.Add(2, {7, {}});
  CHECK(left.WhoCannotAnswer(tensors.FindOrCreate("x")) == -1);
  CHECK(left.WhoCannotAnswer(Reported(&tensors, "leave", RequestKind::kLeave)) == -1);
  CHECK(left.WhoCannotAnswer(Reported(&tensors, "y")) == 7);
}

TEST_CASE("a parent hears what a rank that has left is still to answer there") {
  TensorTable tensors;
  const LeftRanks left(&tensors);
  Reported(&tensors, "waits here for others");
  tensors.FindOrCreate("was reported upwards").pending = true;
  CHECK(Sorted(left.StillToReport(1, {"is still to come", "was reported upwards"})) ==
        Names{"is still to come", "waits here for others"});
  CHECK(Sorted(left.StillToReport(2, {"is still to come"})) == Names{"is still to come"});
}

}  // namespace
}  // namespace hvd::rt
