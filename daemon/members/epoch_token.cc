// SPDX-License-Identifier: Apache-2.0
#include "daemon/members/epoch_token.h"

#include "proto/hmac_sha256.h"

namespace hvd::daemon {

std::string EpochToken(std::string_view secret, uint64_t epoch) {
  std::string words = "hvd epoch ";
  words.append(reinterpret_cast<const char*>(&epoch), sizeof(epoch));
  return std::string(AsText(HmacSha256(secret, words)));
}

}  // namespace hvd::daemon
