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

namespace hvd {

// Keeps the message and returns the code.
hvd_status_t Fail(hvd_status_t code, std::string message);
hvd_status_t Return(const absl::Status& status);
// What the engine itself says is wrong with the arguments was agreed among ranks: a mismatch.
hvd_status_t ReturnExecuted(const absl::Status& status);
hvd_status_t NotInitialized();
// What failed, if it did: the collective of this name. Returns `code`.
hvd_status_t NoteName(hvd_status_t code, std::string_view name);

// Nothing may be thrown into C; what is thrown inside is memory running out.
template <class Body>
hvd_status_t Guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fail(HVD_ERR_INTERNAL, "out of memory");
  } catch (const std::exception& error) {
    return Fail(HVD_ERR_INTERNAL, error.what());
  }
}

}  // namespace hvd
