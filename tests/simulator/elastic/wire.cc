// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/elastic/wire.h"

#include <iterator>

namespace hvd::elastic_simulator {

Wire::Wire(Scheduler* scheduler, std::function<bool(int from, int to)> open)
    : scheduler_(scheduler), open_(std::move(open)) {}

void Wire::Give(const Gift& gift, const std::vector<int>& hosts) {
  Gift kept = gift;
  if (any_epoch_) kept.key.epoch = 0;
  boards_[{kept.host, kept.key}][kept.rank] = kept.given;
  for (const int host : hosts) {
    if (host != kept.host) links_[{kept.host, host}].push_back(kept);
  }
}

bool Wire::Ready() const {
  for (const auto& [ends, link] : links_) {
    if (!link.empty() && open_(ends.first, ends.second)) return true;
  }
  return false;
}

void Wire::Step() {
  std::vector<decltype(links_)::iterator> open;
  for (auto each = links_.begin(); each != links_.end(); ++each) {
    if (!each->second.empty() && open_(each->first.first, each->first.second)) open.push_back(each);
  }
  auto& [ends, link] = *open[scheduler_->random().Below(open.size())];
  // Gifts that lie in one host's buffers come together.
  const size_t batch = 1 + scheduler_->random().Below(link.size());
  for (size_t i = 0; i < batch; ++i) {
    Gift gift = std::move(link.front());
    link.pop_front();
    boards_[{ends.second, gift.key}][gift.rank] = std::move(gift.given);
  }
}

void Wire::Forget(uint64_t epochs_before) {
  std::erase_if(boards_, [&](const auto& entry) {
    return entry.first.second.epoch != 0 && entry.first.second.epoch < epochs_before;
  });
}

}  // namespace hvd::elastic_simulator
