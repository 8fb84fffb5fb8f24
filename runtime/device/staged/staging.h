// SPDX-License-Identifier: Apache-2.0
// Host memory that devices copy to and from, kept for its next use: pieces of the process's arena,
// so that the ranks of a host reduce in it where it lies, pinned for the driver.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "runtime/gpu/gpu_device.h"
#include "runtime/session/arena.h"

namespace hvd::rt {

class Staging {
 public:
  // `arena` outlives it.
  explicit Staging(Arena* arena) : arena_(*arena) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  struct Piece {
    std::byte* memory = nullptr;  // on a page; null: none
    size_t bytes = 0;
  };
  // At least so many bytes. `device` pins what is new; where it refuses, copies are slower and
  // right all the same. ResourceExhausted: there is no memory.
  absl::StatusOr<Piece> Take(size_t bytes, const std::shared_ptr<GpuDevice>& device);
  // Null is nothing. No copy touches it any more.
  void Give(const Piece& piece);
  // Gives back to the system what was given here. Pieces that are still taken stay with the
  // process.
  void Clear();

  // Sizes are powers of two, and of large ones eighths between them: what is given back fits the
  // next of its kind.
  static constexpr size_t kLeast = size_t{64} << 10;
  static size_t SizeFor(size_t bytes);

 private:
  // A piece that nobody has.
  struct Idle {
    std::byte* memory = nullptr;
    void* begin = nullptr;  // as it was allocated
    bool in_arena = false;
    std::shared_ptr<GpuDevice> pinned_by;  // null: it is not pinned
  };
  absl::StatusOr<Idle> Make(size_t bytes, const std::shared_ptr<GpuDevice>& device);
  void Free(const Idle& idle);

  Arena& arena_;
  Mutex mutex_;
  std::map<size_t, std::vector<Idle>> idle_ ABSL_GUARDED_BY(mutex_);  // by size
  std::map<const std::byte*, Idle> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvd::rt
