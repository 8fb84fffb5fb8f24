// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/faults/cooldown.h"

#include <algorithm>
#include <cmath>

namespace hvd::cli {

// One that was well for as long as the longest cooldown begins anew.
double Cooldown::Failed(const std::string& host, double now) {
  Record& record = records_[host];
  if (record.failures > 0 && now > record.until + most_s_) record.failures = 0;
  const double length = std::min(most_s_, std::ldexp(least_s_, std::min(record.failures, 60)));
  ++record.failures;
  record.until = now + length;
  return length;
}

bool Cooldown::Cools(const std::string& host, double now) const { return now < Until(host); }

double Cooldown::Until(const std::string& host) const {
  const auto found = records_.find(host);
  return found == records_.end() ? 0 : found->second.until;
}

}  // namespace hvd::cli
