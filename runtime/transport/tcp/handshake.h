// SPDX-License-Identifier: Apache-2.0
// How two ranks prove to one another that they know the epoch's secret, before a byte of anything
// else is read. Three words of fixed size: who was called challenges, the caller answers, who was
// called confirms. Each proof is an HMAC of everything said so far and of who says it, so that none
// serves for another connection, another pair of ranks or the other direction. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hvd::rt {

inline constexpr size_t kSecretBytes = 32;
inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kChallengeBytes = 8 + kNonceBytes;
inline constexpr size_t kAnswerBytes = 16 + kNonceBytes + 32;
inline constexpr size_t kConfirmationBytes = 32;

// Which connection it is to be.
struct LaneName {
  uint32_t caller = 0;  // ranks
  uint32_t called = 0;
  uint32_t lane = 0;
};

// Makes a nonce of the system's randomness.
absl::StatusOr<std::string> MakeNonce();

std::string MakeChallenge(std::string_view nonce);
// False: whoever listens there speaks something else.
bool IsChallenge(std::string_view challenge);
std::string MakeAnswer(std::string_view secret, std::string_view challenge, const LaneName& name,
                       std::string_view nonce);
// Nothing: it does not know the secret, or answers another challenge.
std::optional<LaneName> CheckAnswer(std::string_view secret, std::string_view challenge,
                                    std::string_view answer);
std::string MakeConfirmation(std::string_view secret, std::string_view challenge,
                             std::string_view answer);
bool CheckConfirmation(std::string_view secret, std::string_view challenge, std::string_view answer,
                       std::string_view confirmation);

}  // namespace hvd::rt
