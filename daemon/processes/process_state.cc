// SPDX-License-Identifier: Apache-2.0
#include "daemon/processes/process_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "base/descriptor.h"

namespace hvd::daemon {
namespace {

constexpr unsigned kExiting = 0x4;  // the kernel's PF_EXITING

}  // namespace

ProcessState StateOf(int pid) {
  ProcessState state;
  const Descriptor file(
      open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[512] = {};
  if (!file.valid() || read(file.get(), text, sizeof(text) - 1) <= 0) return state;
  // After the name, which may hold anything: state, five numbers of parents and terminals, flags.
  const char* after_name = strrchr(text, ')');
  char letter = '?';
  unsigned flags = 0;
  if (after_name == nullptr ||
      sscanf(after_name, ") %c %*d %*d %*d %*d %*d %u", &letter, &flags) != 2) {
    return state;
  }
  state.letter = letter;
  state.exiting = (flags & kExiting) != 0 || letter == 'Z' || letter == 'X';
  return state;
}

}  // namespace hvd::daemon
