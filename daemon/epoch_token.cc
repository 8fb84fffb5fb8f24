#include "daemon/epoch_token.h"

#include <bit>
#include <cstring>

namespace hvd {
namespace {

struct SipState {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void Take(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
};

uint64_t Word(std::string_view bytes) {
  uint64_t word = 0;
  memcpy(&word, bytes.data(), bytes.size());
  return word;
}

}  // namespace

uint64_t SipHash(std::string_view key, std::string_view data) {
  const uint64_t k0 = Word(key.substr(0, 8));
  const uint64_t k1 = Word(key.substr(8, 8));
  SipState state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                 k1 ^ 0x7465646279746573};
  const uint64_t length = data.size();
  for (; data.size() >= 8; data.remove_prefix(8)) state.Take(Word(data.substr(0, 8)));
  state.Take(Word(data) | length << 56);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

std::string EpochToken(std::string_view secret, uint64_t epoch) {
  std::string key(kEpochSecretBytes, '\0');
  for (size_t i = 0; i < secret.size(); ++i) key[i % kEpochSecretBytes] ^= secret[i];
  std::string number(sizeof(epoch), '\0');
  memcpy(number.data(), &epoch, sizeof(epoch));
  const uint64_t token = SipHash(key, number);
  memcpy(number.data(), &token, sizeof(token));
  return number;
}

}  // namespace hvd
