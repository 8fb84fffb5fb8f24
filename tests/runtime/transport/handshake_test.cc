// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/handshake.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

const std::string kSecret(kSecretBytes, 's');
const LaneName kName{3, 1, 2};

struct Talk {
  std::string challenge = MakeChallenge(*MakeNonce());
  std::string answer = MakeAnswer(kSecret, challenge, kName, *MakeNonce());
  std::string confirmation = MakeConfirmation(kSecret, challenge, answer);
};

TEST_CASE("two that know the secret understand one another") {
  const Talk talk;
  CHECK(talk.challenge.size() == kChallengeBytes);
  CHECK(talk.answer.size() == kAnswerBytes);
  CHECK(talk.confirmation.size() == kConfirmationBytes);
  CHECK(IsChallenge(talk.challenge));
  const auto name = CheckAnswer(kSecret, talk.challenge, talk.answer);
  REQUIRE(name.has_value());
  CHECK(name->caller == 3);
  CHECK(name->called == 1);
  CHECK(name->lane == 2);
  CHECK(CheckConfirmation(kSecret, talk.challenge, talk.answer, talk.confirmation));
}

TEST_CASE("nonces never come twice, and the secret is in no word") {
  const Talk one, two;
  CHECK(one.challenge != two.challenge);
  CHECK(one.answer != two.answer);
  CHECK((one.challenge + one.answer + one.confirmation).find("ssssssss") == std::string::npos);
}

TEST_CASE("a changed bit anywhere, another secret, or another length proves nothing") {
  const Talk talk;
  for (size_t i = 0; i < talk.answer.size(); ++i) {
    std::string changed = talk.answer;
    changed[i] ^= 1;
    CHECK_FALSE(CheckAnswer(kSecret, talk.challenge, changed).has_value());
    CHECK_FALSE(CheckConfirmation(kSecret, talk.challenge, changed, talk.confirmation));
  }
  for (size_t i = 0; i < talk.confirmation.size(); ++i) {
    std::string changed = talk.confirmation;
    changed[i] ^= 1;
    CHECK_FALSE(CheckConfirmation(kSecret, talk.challenge, talk.answer, changed));
  }
  const std::string other(kSecretBytes, 't');
  CHECK_FALSE(CheckAnswer(other, talk.challenge, talk.answer).has_value());
  CHECK_FALSE(CheckConfirmation(other, talk.challenge, talk.answer, talk.confirmation));
  CHECK_FALSE(CheckAnswer(kSecret, talk.challenge, talk.answer.substr(1)).has_value());
  CHECK_FALSE(CheckAnswer(kSecret, talk.challenge, "").has_value());
  CHECK_FALSE(IsChallenge(std::string(kChallengeBytes, 'x')));
  CHECK_FALSE(IsChallenge(talk.challenge.substr(1)));
}

TEST_CASE("a proof serves once and one way: not for another challenge, not reflected") {
  const Talk talk, later;
  CHECK_FALSE(CheckAnswer(kSecret, later.challenge, talk.answer).has_value());
  CHECK_FALSE(CheckConfirmation(kSecret, later.challenge, later.answer, talk.confirmation));
  // The caller's proof is not what the called must prove.
  const std::string proof = talk.answer.substr(talk.answer.size() - kConfirmationBytes);
  CHECK_FALSE(CheckConfirmation(kSecret, talk.challenge, talk.answer, proof));
  std::string reflected = talk.answer;
  reflected.replace(reflected.size() - kConfirmationBytes, kConfirmationBytes, talk.confirmation);
  CHECK_FALSE(CheckAnswer(kSecret, talk.challenge, reflected).has_value());
}

}  // namespace
}  // namespace hvd::rt
