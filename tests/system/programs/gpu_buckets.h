// SPDX-License-Identifier: Apache-2.0
// What buckets on a GPU promise.
#pragma once

namespace gpu {

// In a job; ends the process with what does not hold.
void CheckBuckets();

}  // namespace gpu
