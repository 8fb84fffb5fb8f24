// SPDX-License-Identifier: Apache-2.0
// A call on tensors of a GPU whose process set goes by NCCL: straight to the engine, which launches
// it when all ranks have asked for it.
//
// Threads: any.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/device/gpus.h"
#include "runtime/sets/process_set.h"

namespace hvd::rt {

// Whether NCCL can have all of it at once. Not what somebody observes: he is told when the bytes
// are there, which the engine tells nobody (staged/).
bool GoesDirectly(absl::Span<const std::unique_ptr<Request>> requests, const DeviceRoute& route);

// The call's requests in `set`, as they were checked; they are borrowed until they are done. An
// error: they were not submitted.
absl::Status SubmitDirectly(absl::Span<const std::unique_ptr<Request>> requests, Gpus* gpus,
                            const ProcessSet& set);

// A request that is done: the streams of its tensors go on behind it, or the bytes are there, as
// its caller wants it.
absl::Status OrderCaller(const Request& request);
// `stream`, of the same device, goes on behind it.
absl::Status OrderStream(const Request& request, void* stream);

}  // namespace hvd::rt
