// SPDX-License-Identifier: Apache-2.0
// Where an epoch's shared memory grows: pieces of the host's file, which a rank takes and all ranks
// that need one map. Ranks tell one another of a piece by its place in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace hvd::rt {

// Threads: any.
class SharedSpace {
 public:
  virtual ~SharedSpace() = default;
  // A piece of at least so many bytes, zeroed, that nobody else has or will get. Its place.
  virtual absl::StatusOr<uint64_t> Take(size_t bytes) = 0;
  // The piece in this process, until the pointer goes. ResourceExhausted says size and limit.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> Map(uint64_t place, size_t bytes) = 0;
  // No rank looks at the piece any more: its memory may go.
  virtual void Give(uint64_t place, size_t bytes) = 0;
};

}  // namespace hvd::rt
