// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/member_numbers.h"

#include "runtime/engine/epoch_world.h"

namespace hvd::rt {
namespace {

constexpr int32_t kFirstId = 1 << 30;
constexpr int kLedBits = 14;

}  // namespace

int32_t MemberNumbers::IdOf(int first_rank, int32_t led) {
  return kFirstId | first_rank << kLedBits | led;
}

int MemberNumbers::TakeRegion() {
  for (int region = kMaxProcessSets; region < kWatchedSets; ++region) {
    if (regions_.insert(region).second) return region;
  }
  return 0;
}

int32_t MemberNumbers::NextLed() { return led_ + 1 < 1 << kLedBits ? ++led_ : 0; }

}  // namespace hvd::rt
