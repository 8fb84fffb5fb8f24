// SPDX-License-Identifier: Apache-2.0
#include "proto/hmac_sha256.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/escaping.h"

namespace hvd {
namespace {

std::string Hex(const Sha256Digest& digest) {
  return absl::BytesToHexString(std::string(AsText(digest)));
}

TEST_CASE("SHA-256 as FIPS 180-4 gives it, also around a block's end") {
  CHECK(Hex(Sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(Hex(Sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(Hex(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(Hex(Sha256(std::string(1000000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(Hex(Sha256(std::string(64, 'a'))) ==
        "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  CHECK(Hex(Sha256(std::string(55, 'a'))) ==
        "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
}

TEST_CASE("HMAC-SHA256 as RFC 4231 gives it") {
  CHECK(Hex(HmacSha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(Hex(HmacSha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(Hex(HmacSha256(std::string(131, '\xaa'),
                       "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("digests are the same in every byte, or not at all") {
  const Sha256Digest one = Sha256("one");
  for (size_t i = 0; i < one.size(); ++i) {
    Sha256Digest other = one;
    other[i] ^= 1;
    CHECK_FALSE(SameDigest(AsText(one), AsText(other)));
  }
  CHECK(SameDigest(AsText(one), AsText(Sha256("one"))));
  CHECK_FALSE(SameDigest(AsText(one), AsText(one).substr(1)));
}

}  // namespace
}  // namespace hvd
