// SPDX-License-Identifier: Apache-2.0
// Errors as the C ABI says them: a code, and the calling thread's last message. No exception
// crosses.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "hvd/hvd.h"

namespace hvd::rt {

// Keeps the message and returns the code.
hvd_status_t Fail(hvd_status_t code, std::string message);
// Neither this nor what follows throws: where there is no memory for words, the code says it.
hvd_status_t Return(const absl::Status& status);
// Likewise for a status of the engine's: if it says that the arguments are wrong, ranks have agreed
// on that, so the code is that of a mismatch.
hvd_status_t ReturnExecuted(const absl::Status& status);
hvd_status_t NotInitialized();
// There is no memory for words.
hvd_status_t FailWordless(hvd_status_t code) noexcept;
hvd_status_t FailThrown(const std::exception& error) noexcept;
// Notes the name of the collective that failed, if it did. Returns `code`.
hvd_status_t NoteName(hvd_status_t code, std::string_view name);

// The rank whose end, or whose doing, an abort is; below 0: it is not known.
struct Culprit {
  int rank = -1;
  std::string host;
};
// Has Return ask `find` about each abort. It may be called by any thread, at any time.
using FindCulprit = Culprit (*)();
void FindCulpritsBy(FindCulprit find);

// Returns the calling thread's last error. The texts are its own until its next one.
const char* LastMessage();
hvd_error_info_t LastErrorInfo();

// Nothing may be thrown into C; what is thrown inside is memory running out.
template <class Body>
hvd_status_t Guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return FailWordless(HVD_ERR_INTERNAL);
  } catch (const std::exception& error) {
    return FailThrown(error);
  }
}

}  // namespace hvd::rt
