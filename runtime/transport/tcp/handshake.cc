// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/handshake.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "proto/hmac_sha256.h"

namespace hvd::rt {
namespace {

constexpr std::string_view kMagic = "hvd-tcp1";
constexpr std::string_view kCallerSays = "hvd tcp: the caller knows ";
constexpr std::string_view kCalledSays = "hvd tcp: the called knows ";

struct Words {
  uint32_t caller = 0;
  uint32_t called = 0;
  uint32_t lane = 0;
  uint32_t nothing = 0;
};
static_assert(sizeof(Words) + kNonceBytes + sizeof(Sha256Digest) == kAnswerBytes);
static_assert(kMagic.size() + kNonceBytes == kChallengeBytes);

std::string Proof(std::string_view secret, std::string_view label, std::string_view challenge,
                  std::string_view rest) {
  std::string said(label);
  said.append(challenge);
  said.append(rest);
  return std::string(AsText(HmacSha256(secret, said)));
}

}  // namespace

absl::StatusOr<std::string> MakeNonce() {
  std::string nonce(kNonceBytes, '\0');
  if (getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size())) return nonce;
  return absl::ErrnoToStatus(errno, "asking the system for random bytes");
}

std::string MakeChallenge(std::string_view nonce) {
  std::string challenge(kMagic);
  return challenge.append(nonce);
}

bool IsChallenge(std::string_view challenge) {
  return challenge.size() == kChallengeBytes && challenge.substr(0, kMagic.size()) == kMagic;
}

std::string MakeAnswer(std::string_view secret, std::string_view challenge, const LaneName& name,
                       std::string_view nonce) {
  const Words words{name.caller, name.called, name.lane, 0};
  std::string answer(reinterpret_cast<const char*>(&words), sizeof(words));
  answer.append(nonce);
  return answer + Proof(secret, kCallerSays, challenge, answer);
}

std::optional<LaneName> CheckAnswer(std::string_view secret, std::string_view challenge,
                                    std::string_view answer) {
  if (answer.size() != kAnswerBytes) return std::nullopt;
  const std::string_view said = answer.substr(0, sizeof(Words) + kNonceBytes);
  if (!SameDigest(Proof(secret, kCallerSays, challenge, said), answer.substr(said.size()))) {
    return std::nullopt;
  }
  Words words;
  memcpy(&words, said.data(), sizeof(words));
  return LaneName{words.caller, words.called, words.lane};
}

std::string MakeConfirmation(std::string_view secret, std::string_view challenge,
                             std::string_view answer) {
  return Proof(secret, kCalledSays, challenge, answer);
}

bool CheckConfirmation(std::string_view secret, std::string_view challenge, std::string_view answer,
                       std::string_view confirmation) {
  return SameDigest(MakeConfirmation(secret, challenge, answer), confirmation);
}

}  // namespace hvd::rt
