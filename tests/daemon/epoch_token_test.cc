#include "daemon/epoch_token.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

TEST_CASE("SipHash-2-4 as its authors publish it") {
  std::string key, data;
  for (int i = 0; i < 16; ++i) key += static_cast<char>(i);
  for (int i = 0; i < 15; ++i) data += static_cast<char>(i);
  CHECK(SipHash(key, data) == 0xa129ca6149be45e5);
  CHECK(SipHash(key, "") == 0x726fdb47dd0e0e31);
  CHECK(SipHash(key, data.substr(0, 8)) == 0x93f5f5799a932462);
}

TEST_CASE("a token depends on the epoch and on every byte of the secret") {
  const std::string secret(32, 's');
  std::string other = secret;
  other[31] = 't';
  CHECK(EpochToken(secret, 1).size() == 8);
  CHECK(EpochToken(secret, 1) == EpochToken(secret, 1));
  CHECK(EpochToken(secret, 1) != EpochToken(secret, 2));
  CHECK(EpochToken(secret, 1) != EpochToken(other, 1));
}

}  // namespace
}  // namespace hvd
