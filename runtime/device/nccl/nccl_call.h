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
#include "runtime/device/nccl/nccl_way.h"
#include "runtime/engine/engine.h"

namespace hvd {

// Returns the way of an engine that libhvd has made.
inline NcclWay& WayOf(Engine& engine) { return *static_cast<NcclWay*>(engine.device()); }

// Whether NCCL can have all of it at once. Not what somebody observes: he is told when the bytes
// are there, which the engine tells nobody (staged/).
bool GoesDirectly(absl::Span<const std::unique_ptr<Request>> requests, const NcclWay& way);

// The call's requests, as they were checked; they are borrowed until they are done. An error: they
// were not submitted.
absl::Status SubmitDirectly(absl::Span<const std::unique_ptr<Request>> requests, Gpus* gpus,
                            Engine* engine);

// A request that is done: the streams of its tensors go on behind it, or the bytes are there, as
// its caller wants it.
absl::Status OrderCaller(const Request& request);
// `stream`, of the same device, goes on behind it.
absl::Status OrderStream(const Request& request, void* stream);

}  // namespace hvd
