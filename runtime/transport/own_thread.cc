// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/own_thread.h"

#include <pthread.h>

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "proto/page/memory_limits.h"
#include "runtime/transport/signals_blocked.h"

namespace hvd::rt {
namespace {

// Returns how much of the address space a thread takes.
size_t StackBytes() {
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (pthread_getattr_default_np(&attributes) != 0) return bytes;
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

}  // namespace

std::thread StartThread(const char* name, std::function<void()> body) {
  const SignalsBlocked inherited;
  try {
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& error) {
    throw std::runtime_error("cannot start the thread " + std::string(name) + ": " +
                             WhyRefused(StackBytes(), ReadMemoryLimits(error.code().value())));
  }
}

}  // namespace hvd::rt
