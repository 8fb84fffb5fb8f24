// SPDX-License-Identifier: Apache-2.0
// Starts hvd's own threads.
#pragma once

#include <functional>
#include <thread>

namespace hvd::rt {

// `name` has 15 characters at most. The thread takes no signals, but those of its own faults
// (signals_blocked.h). Throws where the system gives none, and says which limit that is.
std::thread StartThread(const char* name, std::function<void()> body);

}  // namespace hvd::rt
