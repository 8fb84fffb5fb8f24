// SPDX-License-Identifier: Apache-2.0
// What a commit's file says of its contents: which items it holds, and where. Other processes have
// written it, so nothing of it is believed before it is checked. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/state/state_layout.h"

namespace hvd::rt {

// At kStateContentsAt.
struct DirectoryPlace {
  uint64_t magic = 0;
  uint64_t at = 0;     // in the file
  uint64_t bytes = 0;  // of it
  uint64_t check = 0;  // ChecksumOf it
};
inline constexpr uint64_t kDirectoryMagic = 0x3144485645544154;

uint64_t ChecksumOf(std::string_view bytes);
std::string WriteDirectory(const std::vector<StateItem>& items);
// `file_bytes`: all items lie within them. DataLoss: it is no directory, or speaks of what is not
// there.
absl::StatusOr<std::vector<StateItem>> ReadDirectory(std::string_view bytes, uint64_t file_bytes);
// Where the directory of a file of so many bytes lies. DataLoss likewise.
absl::Status CheckPlace(const DirectoryPlace& place, uint64_t file_bytes);

}  // namespace hvd::rt
