// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/retired_ids.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

using Ids = std::vector<uint64_t>;

// Ids 1 to `count`, of which the larger ones were used later.
void AddIds(TensorTable* tensors, uint64_t count) {
  for (uint64_t id = 1; id <= count; ++id) {
    LeaderTensor& tensor = tensors->FindOrCreate("t" + std::to_string(id));
    tensors->SetId(&tensor, id);
    tensor.used = id;
  }
}

TEST_CASE("beyond the limit the ids are picked that were not used for longest") {
  TensorTable tensors;
  AddIds(&tensors, 9);
  RetiredIds retired(&tensors, 2);
  CHECK(retired.Pick(9, 9).empty());
  CHECK(retired.Pick(8, 9) == Ids{1, 2, 3});
  tensors.FindId(1)->pending = true;
  CHECK(retired.Pick(8, 9) == Ids{2, 3, 4});
}

TEST_CASE("an id is understood until every child says that it uses it no more") {
  TensorTable tensors;
  AddIds(&tensors, 9);
  RetiredIds retired(&tensors, 2);
  CHECK_FALSE(retired.Retire({1, 2}));
  CHECK(tensors.FindId(1)->retired);
  // No others before that.
  CHECK(retired.Pick(4, 9).empty());
  CHECK_FALSE(retired.OnChildRetired());
  CHECK(tensors.FindId(2) != nullptr);
  CHECK(retired.OnChildRetired());
  CHECK(tensors.FindId(1) == nullptr);
  CHECK(tensors.FindId(2) == nullptr);
  CHECK(tensors.ids() == 7);
  CHECK(retired.Pick(6, 9) == Ids{3, 4});
}

TEST_CASE("a leader with nobody below forgets at once") {
  TensorTable tensors;
  AddIds(&tensors, 2);
  RetiredIds retired(&tensors, 0);
  CHECK(retired.Retire({1}));
  CHECK(tensors.FindId(1) == nullptr);
}

TEST_CASE("where hardly anything is idle the next look waits for as many decisions") {
  TensorTable tensors;
  AddIds(&tensors, 9);
  tensors.ForEach([](LeaderTensor* tensor) { tensor->pending = tensor->id != 9; });
  RetiredIds retired(&tensors, 0);
  CHECK(retired.Pick(8, 100) == Ids{9});
  tensors.ForEach([](LeaderTensor* tensor) { tensor->pending = false; });
  CHECK(retired.Pick(8, 102).empty());
  CHECK(retired.Pick(8, 103) == Ids{1, 2, 3});
}

}  // namespace
}  // namespace hvd::rt
