// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/epoch_token.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

TEST_CASE("a token has 256 bits and depends on the epoch and on every byte of the secret") {
  const std::string secret(32, 's');
  std::string other = secret;
  other[31] = 't';
  CHECK(EpochToken(secret, 1).size() == 32);
  CHECK(EpochToken(secret, 1) == EpochToken(secret, 1));
  CHECK(EpochToken(secret, 1) != EpochToken(secret, 2));
  CHECK(EpochToken(secret, 1) != EpochToken(other, 1));
}

}  // namespace
}  // namespace hvd::daemon
