// SPDX-License-Identifier: Apache-2.0
// A commit in a file: written from a program's entries, and read back into them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/state/elastic/tensor_copies.h"
#include "runtime/state/entries.h"
#include "runtime/state/state_files.h"
#include "runtime/state/state_layout.h"

namespace hvd::rt {

// Which cell is this rank's, and how many write the file.
struct ImageWriter {
  int local_rank = 0;
  int local_size = 1;
};

// What a commit is written from and read into.
struct ImageOf {
  StateEntries& entries;
  const TensorCopies& bytes;  // copies the tensors'
};

// This rank's part of a commit: takes its old word back, writes its share of the replicated
// tensors, and as the first of its host the rest. EndState of `word` remains to be done. An error
// leaves the file without a complete commit.
absl::Status WriteImage(const ImageOf& of, const StateLayout& layout, const ImageWriter& writer,
                        StateFile* file);

// Finds what a file holds as commit `number`, and where. NotFound: it holds another, or none.
absl::StatusOr<std::vector<StateItem>> FindImage(uint64_t number, StateFile* file);
// The items' bytes into the entries, which have them (CheckFits, Hold). REQUIRES: of FindImage.
absl::Status ReadTensors(const std::vector<StateItem>& items, const StateFile& file,
                         const ImageOf& into);
// ResourceExhausted: there is no memory for them.
absl::StatusOr<std::map<std::string, std::string>> ReadBytes(const std::vector<StateItem>& items,
                                                             const StateFile& file);

}  // namespace hvd::rt
