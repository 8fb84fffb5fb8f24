// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/faults/share_budget.h"

#include <algorithm>
#include <cmath>

namespace hvd::cli {

bool ShareBudget::Died(const std::string& host, int share, bool outside, double now) {
  Record& record = records_[{host, share}];
  if (now > record.until + kMostWaitS) record.in_a_row = 0;
  const double wait = std::ldexp(kLeastWaitS, std::min(record.in_a_row - 1, 60));
  record.until = now + (record.in_a_row == 0 ? 0 : std::min(kMostWaitS, wait));
  ++record.in_a_row;
  record.outside = outside;
  record.renewable = false;
  return ++record.deaths == kDeaths;
}

const ShareBudget::Record* ShareBudget::Find(const std::string& host, int share) const {
  const auto found = records_.find({host, share});
  return found == records_.end() ? nullptr : &found->second;
}

bool ShareBudget::IsOut(const std::string& host, int share) const {
  const Record* const record = Find(host, share);
  return record != nullptr && record->out();
}

bool ShareBudget::StaysOut(const std::string& host, int share) const {
  const Record* const record = Find(host, share);
  return record != nullptr && record->out() && !record->renewable;
}

double ShareBudget::Until(const std::string& host, int share) const {
  const Record* const record = Find(host, share);
  return record == nullptr ? 0 : record->until;
}

// If the job gets on, a rank that somebody else kills is replaced without a wait.
void ShareBudget::GetsOn() {
  for (auto& [place, record] : records_) {
    record.renewable = true;
    if (record.out()) continue;
    record.deaths = 0;
    if (record.outside) record.in_a_row = 0;
  }
}

void ShareBudget::Renew(const std::string& host, bool all) {
  for (auto& [place, record] : records_) {
    if (place.first == host && (all || record.renewable)) record.deaths = 0;
  }
}

bool ShareBudget::AnyStaysOut() const {
  return std::any_of(records_.begin(), records_.end(), [](const auto& entry) {
    return entry.second.out() && !entry.second.renewable;
  });
}

}  // namespace hvd::cli
