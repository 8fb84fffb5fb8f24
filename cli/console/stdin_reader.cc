// SPDX-License-Identifier: Apache-2.0
#include "cli/console/stdin_reader.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace hvd::cli {

StdinReader::StdinReader(bool wanted, const ConsoleSignals* signals)
    : signals_(signals), open_(wanted), is_terminal_(isatty(STDIN_FILENO) != 0) {}

bool StdinReader::MayRead() const { return !is_terminal_ || tcgetpgrp(STDIN_FILENO) == getpgrp(); }

std::optional<Frame> StdinReader::Read() {
  Frame frame;
  frame.kind = FrameKind::kStdin;
  frame.text.resize(std::min<uint64_t>(room_ - read_, kMaxFrameText));
  const ssize_t got = read(STDIN_FILENO, frame.text.data(), frame.text.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return std::nullopt;
  // EIO: we went to the background between the look and the read.
  if (got < 0 && errno == EIO && is_terminal_ && !signals_->TerminalIsGone()) return std::nullopt;
  frame.text.resize(std::max<ssize_t>(got, 0));
  frame.end = got <= 0;
  open_ = got > 0;
  read_ += frame.text.size();
  return frame;
}

bool StdinReader::IsEnter(const Frame& piece) const {
  return is_terminal_ && absl::EndsWith(piece.text, "\n");
}

}  // namespace hvd::cli
