// SPDX-License-Identifier: Apache-2.0
// The files that take commits: two of the host, which all its ranks write, and two of this rank's
// share. They are hvdd's and outlive this process; where there are none they are this process's
// own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "proto/page/state_box.h"

namespace hvd::rt {

// A file as this process has mapped it. It only grows, by any of the ranks that have it. Threads:
// one at a time.
class StateFile {
 public:
  // FailedPrecondition: it could be shrunk, which would kill whoever reads.
  static absl::StatusOr<std::unique_ptr<StateFile>> Take(Descriptor fd);
  static absl::StatusOr<std::unique_ptr<StateFile>> MakeOwn();
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  // Makes sure that so many bytes are there, and mapped. ResourceExhausted says size and limit.
  absl::Status Grow(uint64_t bytes);
  // The pages of such bytes are there: what has no memory is an error here, and no signal later.
  absl::Status Populate(uint64_t begin, uint64_t end);
  // Maps those of the first `bytes` that are there; returns how many the file has. It may be larger
  // than what its commit needs: others, that could not be written, have made it grow.
  absl::StatusOr<uint64_t> MapFirst(uint64_t bytes);

  // Returns the address of a mapped byte.
  std::byte* at(uint64_t offset) const { return base_ + offset; }
  StateHead* head() const { return reinterpret_cast<StateHead*>(base_); }

 private:
  explicit StateFile(Descriptor fd) : fd_(std::move(fd)) {}
  absl::StatusOr<uint64_t> Size() const;
  absl::Status Map(uint64_t bytes);

  const Descriptor fd_;
  std::byte* base_ = nullptr;
  uint64_t mapped_ = 0;
  struct Range {
    uint64_t begin, end;
  };
  std::vector<Range> populated_;
};

struct StateFiles {
  std::array<std::unique_ptr<StateFile>, 2> host;   // by CommitBook::FileOf
  std::array<std::unique_ptr<StateFile>, 2> share;  // likewise

  // Takes four descriptors: the host's, then the share's.
  static absl::StatusOr<StateFiles> Take(std::vector<Descriptor> descriptors);
  static absl::StatusOr<StateFiles> MakeOwn();
  bool empty() const { return host[0] == nullptr; }
};

}  // namespace hvd::rt
