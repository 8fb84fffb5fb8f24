// SPDX-License-Identifier: Apache-2.0
// The beginning of a rank's address, whatever carries it: what kind it is, whose, of which epoch.
// Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hvd::rt {

struct AddressHead {
  std::string kind;  // "tcp", "ucx"
  int rank = 0;
  uint64_t mark = 0;  // of the epoch; no secret
};

std::string PutAddressHead(const AddressHead& head, const std::string& rest);

// The rest of rank `rank`'s address. InvalidArgument when it is none, of another kind than `own`,
// which is then named with both ranks, or of another epoch or rank.
absl::StatusOr<std::string> TakeAddressHead(const AddressHead& own, int rank,
                                            const std::string& address);

}  // namespace hvd::rt
