// SPDX-License-Identifier: Apache-2.0
// What a process of its own answers: what is asked there may crash, hang or never stop talking.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace hvd::cli {

struct ChildQuestion {
  // Runs in the child, writes the answer to `fd` and does not return.
  std::function<void(int fd)> answer;
  std::string last;  // the answer is whole when it ends so; empty: when nothing holds `fd` any more
  std::chrono::milliseconds patience = std::chrono::seconds(10);
};

struct ChildAnswer {
  std::string text;     // at most 64 KiB
  std::string problem;  // why it did not come to its end; empty if it did
  int wait_status = 0;  // waitpid's
};

// Nothing of the child's process group lives on. Call it before any thread exists.
ChildAnswer AskChild(const ChildQuestion& question);

}  // namespace hvd::cli
