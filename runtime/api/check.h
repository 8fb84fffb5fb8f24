// The arguments of the C ABI → a Request, or what is wrong with them. Pure.
#pragma once

#include "absl/status/status.h"
#include "hvd/hvd.h"
#include "runtime/engine/request.h"

namespace hvd {

// A call as the user made it.
struct Call {
  RequestKind kind = RequestKind::kBarrier;
  const hvd_tensor_t* input = nullptr;
  const hvd_tensor_t* output = nullptr;
  const hvd_options_t* options = nullptr;
};

// Fills `request`. `world_size` bounds the root. InvalidArgument or Unimplemented otherwise.
absl::Status CheckCall(const Call& call, int world_size, Request* request);

}  // namespace hvd
