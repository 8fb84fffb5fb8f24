// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/unreached.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

constexpr char kPayload[] = "hvd/unreached";

}  // namespace

absl::Status Unreached(absl::Status why, int rank) {
  why.SetPayload(kPayload, absl::Cord(absl::StrCat(rank)));
  return why;
}

int UnreachedBy(const absl::Status& why) {
  const auto payload = why.GetPayload(kPayload);
  int rank = -1;
  const bool told = payload.has_value() && absl::SimpleAtoi(std::string(*payload), &rank);
  return told ? rank : -1;
}

}  // namespace hvd::rt
