// SPDX-License-Identifier: Apache-2.0
// The signals that hvdrun answers, as a descriptor.
#pragma once

#include <optional>

#include "base/descriptor.h"

namespace hvd::cli {

// Takes INT, TERM, HUP, QUIT, USR1, USR2, CONT, WINCH and CHLD, unless they were ignored when we
// began (nohup, a shell's background job). TSTP keeps its default: Ctrl-Z stops this process. PIPE,
// TTIN and TTOU are ignored: a closed pipe is an error to read, and the background never stops us.
class ConsoleSignals {
 public:
  ConsoleSignals();
  int fd() const { return fd_.get(); }  // readable when a signal has come
  std::optional<int> Next();
  // Whether there was a controlling terminal at the start and there is none now.
  bool TerminalIsGone() const;

 private:
  Descriptor fd_;
  bool had_terminal_;
};

}  // namespace hvd::cli
