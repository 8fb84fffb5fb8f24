// The word that every data-plane message of an epoch carries. Every host derives the same one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

inline constexpr size_t kEpochSecretBytes = 16;  // at least; more is folded in

// SipHash-2-4 of the epoch's number, keyed by the job's secret; 8 bytes.
std::string EpochToken(std::string_view secret, uint64_t epoch);

// SipHash-2-4 with a 16-byte key.
uint64_t SipHash(std::string_view key, std::string_view data);

}  // namespace hvd
