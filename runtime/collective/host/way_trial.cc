// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/host/way_trial.h"

#include <algorithm>

namespace hvd::rt {
namespace {

// Only what is clearly better is taken: staging needs nobody's leave.
constexpr double kClearlyBetter = 0.95;
// Not worth another try: the first calls are the program's too.
constexpr double kHopeless = 1.5;

}  // namespace

Way WayTrial::next() const {
  if (decided()) return chosen_;
  return calls_ % 2 == 0 ? Way::kStaged : Way::kPeerReads;
}

void WayTrial::Add(int64_t ns) {
  if (decided()) return;
  int64_t& best = best_ns_[static_cast<int>(next())];
  best = std::min(best, ns);
  ++calls_;
  const auto staged = static_cast<double>(best_ns_[static_cast<int>(Way::kStaged)]);
  const auto reads = static_cast<double>(best_ns_[static_cast<int>(Way::kPeerReads)]);
  if (calls_ == kCalls) return Decide(reads < kClearlyBetter * staged ? Way::kPeerReads : chosen_);
  if (calls_ % 2 == 0 && reads > kHopeless * staged) Decide(Way::kStaged);
}

void WayTrial::Decide(Way way) {
  chosen_ = way;
  calls_ = kCalls;
}

}  // namespace hvd::rt
