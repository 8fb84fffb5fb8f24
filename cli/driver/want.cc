// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/want.h"

#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include "cli/link/frame.h"
#include "proto/exit_code.h"

namespace hvd::cli {
namespace {

constexpr int kPatienceMs = 1000;  // of a console that is slow

int g_console = -1;

// None: what was thrown is a mistake of ours.
const char* WordsForWant() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return "hvdrun: its driver process gets no more threads from this machine; raise the limit "
             "of "
             "processes (ulimit -u, the cgroup's pids.max) or of memory (ulimit -v)\n"
             "  exit code 125\n";
    }
  } catch (const std::bad_alloc&) {
    return "hvdrun: its driver process gets no more memory from this machine; raise its limit "
           "(ulimit -v)\n  exit code 125\n";
  } catch (...) {
  }
  return nullptr;
}

[[noreturn]] void End() {
  const char* const words = WordsForWant();
  if (words == nullptr) std::abort();
  Frame final;
  final.kind = FrameKind::kFinal;
  final.number = kExitLauncher;
  final.text = words;
  pollfd room = {g_console, POLLOUT, 0};
  if (SendFrame(g_console, final) == FrameResult::kWouldBlock && poll(&room, 1, kPatienceMs) == 1) {
    SendFrame(g_console, final);
  }
  _exit(0);
}

}  // namespace

void EndInWordsForWant(int console) {
  g_console = console;
  std::set_terminate(End);
}

}  // namespace hvd::cli
