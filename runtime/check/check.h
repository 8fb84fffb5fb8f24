// SPDX-License-Identifier: Apache-2.0
// The arguments of the C ABI → Requests, or what is wrong with them. Pure.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "hvd/hvd.h"
#include "runtime/engine/request/request.h"
#include "runtime/sets/set_seen.h"

namespace hvd::rt {

// The caller's options, with defaults for what it does not have (NULL; a smaller, older struct).
absl::Status ReadOptions(const hvd_options_t* given, hvd_options_t* options);

// A call as the user made it.
struct Call {
  RequestKind kind = RequestKind::kBarrier;
  const hvd_tensor_t* input = nullptr;
  const hvd_tensor_t* output = nullptr;
  hvd_options_t options = HVD_OPTIONS_INIT;
  const int64_t* splits = nullptr;  // of an alltoall
  int32_t split_count = 0;
  int32_t peer = 0;  // of a send or receive: global rank
  int64_t tag = 0;   // likewise
};
// InvalidArgument or Unimplemented when it is wrong; else fills `request`.
absl::Status CheckCall(const Call& call, const Membership& set, Request* request);

struct GroupCall {
  RequestKind kind = RequestKind::kAllreduce;
  const hvd_tensor_t* inputs = nullptr;
  const hvd_tensor_t* outputs = nullptr;
  int32_t count = 0;
  hvd_options_t options = HVD_OPTIONS_INIT;
};
// One request a dtype, in the order of their numbers. The first has the call's name, or is unnamed;
// the others are named when they are submitted.
absl::StatusOr<std::vector<std::unique_ptr<Request>>> CheckGroup(const GroupCall& call,
                                                                 const Membership& set);
}  // namespace hvd::rt
