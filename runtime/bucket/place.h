// SPDX-License-Identifier: Apache-2.0
// Where a bucket's tensors lie, and what that asks of the calls on them: on a GPU, the order of
// streams.
//
// Threads: memory, Clear and Copy any; of the others one at a time. The bucket sees to it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hvd/hvd.h"
#include "runtime/bucket/copy.h"
#include "runtime/device/gpus.h"
#include "runtime/session/arena.h"

namespace hvd::rt {

class BucketPlace {
 public:
  BucketPlace() = default;
  virtual ~BucketPlace() = default;  // gives the memory back; nothing is under way there
  BucketPlace(const BucketPlace&) = delete;
  BucketPlace& operator=(const BucketPlace&) = delete;

  // Always the same. On a line of 64 bytes.
  virtual std::byte* memory() const = 0;
  // Makes them zero. They are when it returns.
  virtual absl::Status Clear(std::byte* begin, size_t bytes) = 0;
  // InvalidArgument when `source` does not fit. A source in the CPU's memory has been read when it
  // returns; one on a GPU is read by what is on its stream then.
  virtual absl::Status Copy(const hvd_tensor_t& source, const CopyTarget& target,
                            const std::string& what) = 0;

  // Notes that the work now on `stream` writes a tensor of `chunk`.
  virtual absl::Status NoteWriter(size_t chunk, void* stream) = 0;
  // Fills in for the chunk's call where its tensor lies, and what the call begins behind.
  virtual absl::Status PutPlace(size_t chunk, hvd_tensor_t* tensor, hvd_options_t* options) = 0;
  // The call is done: what its writers' streams are asked from now on comes behind it.
  virtual void EndCall(size_t chunk, hvd_handle_t handle) = 0;
  // Puts what is asked of `stream` from now on behind all calls that EndCall has ended.
  virtual absl::Status LetFollow(void* stream) = 0;
};

// In the arena, which outlives it, or where there is room. ResourceExhausted.
absl::StatusOr<std::unique_ptr<BucketPlace>> MakeHostPlace(size_t bytes, Arena* arena);

struct DevicePlaceOptions {
  Gpus* gpus = nullptr;  // outlive it
  int device_id = 0;
  size_t bytes = 0;
  size_t chunks = 0;
};
// ResourceExhausted: the GPU gives no such memory. Unimplemented: there is no such GPU.
absl::StatusOr<std::unique_ptr<BucketPlace>> MakeDevicePlace(const DevicePlaceOptions& options);

}  // namespace hvd::rt
