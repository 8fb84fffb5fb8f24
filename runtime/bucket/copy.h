// SPDX-License-Identifier: Apache-2.0
// A tensor of the caller's into memory of another float type. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "hvd/hvd.h"

namespace hvd::rt {

struct CopyTarget {
  void* data = nullptr;
  hvd_dtype_t dtype = HVD_FLOAT32;
  size_t count = 0;  // elements
};
// InvalidArgument when `source` is no tensor, or not of so many elements. `what`: the target.
absl::Status CheckSource(const hvd_tensor_t& source, const CopyTarget& target,
                         const std::string& what);
// InvalidArgument when `source` is wrong, has another number of elements, or another type that is
// not float16, bfloat16, float32 or float64 as the target's. Rounds to nearest even.
absl::Status CopyConverted(const hvd_tensor_t& source, const CopyTarget& target,
                           const std::string& what);

}  // namespace hvd::rt
