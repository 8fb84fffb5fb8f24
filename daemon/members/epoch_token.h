// SPDX-License-Identifier: Apache-2.0
// The secret of an epoch's data plane: ranks that know it belong together. Every host derives the
// same one from the job's secret; it travels over links A and B alone, and no word of it over the
// data plane.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hvd::daemon {

inline constexpr size_t kEpochSecretBytes = 32;  // of the job's secret, at least

// HMAC-SHA256 of the epoch's number, keyed by the job's secret; 32 bytes.
std::string EpochToken(std::string_view secret, uint64_t epoch);

}  // namespace hvd::daemon
