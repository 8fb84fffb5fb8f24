// SPDX-License-Identifier: Apache-2.0
// What a call that is done gives its caller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "hvd/hvd.h"
#include "runtime/api/handles/pending.h"

namespace hvd::rt {

// Where a blocking call's results go; null where they are not wanted.
struct CallerResults {
  hvd_tensor_t* result = nullptr;
  int64_t* received_splits = nullptr;
  int32_t* last_rank = nullptr;  // of a join
};

// Waits for all requests of it: the first error counts. The streams of its tensors go on behind it.
absl::Status WaitFor(const Pending& pending);
// The same, but that it orders no stream. REQUIRES: it has no staged call.
absl::Status AwaitDone(const Pending& pending);

// Once it is done and went well.
void GiveResults(Request* request, const CallerResults& place);
// `results` has room for as many tensors as TensorsOf says.
void GiveGroupResults(const Pending& pending, hvd_tensor_t* results);
size_t TensorsOf(const Pending& pending);

}  // namespace hvd::rt
