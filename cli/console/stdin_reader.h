// SPDX-License-Identifier: Apache-2.0
// hvdrun's stdin, read only as far as the ranks' hosts have room for it. Used by the console's one
// thread.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/console/signals.h"
#include "cli/link/frame.h"

namespace hvd::cli {

class StdinReader {
 public:
  // `wanted`: some rank reads it. `signals` outlive this.
  StdinReader(bool wanted, const ConsoleSignals* signals);

  // There is something to read, as far as we know, and room for it.
  bool wants() const { return open_ && read_ < room_; }
  // Never from the background: that would stop us, or steal the shell's input.
  bool MayRead() const;
  // Allows so many bytes in total to be read.
  void SetRoom(uint64_t bytes) { room_ = bytes; }
  // Reads what has come, for the driver; nothing when none can be had now.
  std::optional<Frame> Read();
  // Whether the person has ended a line on a terminal with this piece.
  bool IsEnter(const Frame& piece) const;

 private:
  const ConsoleSignals* const signals_;
  bool open_;
  const bool is_terminal_;
  uint64_t room_ = 0;
  uint64_t read_ = 0;
};

}  // namespace hvd::cli
