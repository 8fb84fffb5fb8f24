// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA256 (RFC 2104 over FIPS 180-4), by which the ranks of an epoch know one another. Our own:
// libhvd may bring no library into the user's process, and the kernel's (AF_ALG) is missing in many
// containers. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hvd {

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest Sha256(std::string_view data);
Sha256Digest HmacSha256(std::string_view key, std::string_view data);

inline std::string_view AsText(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// Takes as long wherever they differ. False for different lengths.
bool SameDigest(std::string_view a, std::string_view b);

}  // namespace hvd
