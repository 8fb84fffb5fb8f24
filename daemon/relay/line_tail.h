// SPDX-License-Identifier: Apache-2.0
// The last lines of a stream, for the verdict. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace hvd::daemon {

class LineTail {
 public:
  static constexpr size_t kMostLines = 20;
  static constexpr size_t kMostBytes = 64 << 10;

  void Take(std::string_view data);
  // Oldest first, the unfinished line last; a line cut at its front says so by "…".
  std::vector<std::string> Lines() const;

 private:
  void Trim();
  size_t CharacterFrom(size_t at) const;

  std::deque<std::string> lines_;
  std::string open_;  // after the last newline
  size_t bytes_ = 0;  // of lines_
};

}  // namespace hvd::daemon
