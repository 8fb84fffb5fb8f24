// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/pending/names.h"

#include <algorithm>

namespace hvd::rt {

LocalName* Names::Find(std::string_view name) {
  if (last_found_ != nullptr && *last_found_->name == name) return last_found_;
  return last_found_ = FindOther(name);
}

LocalName* Names::FindOther(std::string_view name) {
  const auto found = names_.find(name);
  if (found != names_.end()) return &found->second;
  if (names_.size() >= most_names_) ForgetIdle();
  const auto made = names_.try_emplace(std::string(name)).first;
  made->second.name = &made->first;
  return &made->second;
}

LocalName* Names::FindFor(const Request& request) {
  return request.unnamed ? NextUnnamed() : Find(request.name);
}

LocalName* Names::NextUnnamed() {
  const uint64_t turn = unnamed_calls_ % kUnnamed;
  if (turn >= unnamed_.size()) {
    unnamed_.push_back(Find(kOwnName + ("unnamed call " + std::to_string(turn + 1))));
    unnamed_.back()->turn = static_cast<uint32_t>(turn + 1);
  }
  ++unnamed_calls_;
  return unnamed_[turn];
}

// Names with a direct number stay: their generations must be counted on. They are few. Where many
// are pending the next look comes when there are twice as many, so that a name costs no more then.
void Names::ForgetIdle() {
  for (auto at = names_.begin(); at != names_.end();) {
    const LocalName& name = at->second;
    const bool idle = name.pending == nullptr && name.direct.ticket.number == 0 && name.turn == 0;
    if (idle && &name == last_found_) last_found_ = nullptr;
    at = idle ? names_.erase(at) : std::next(at);
  }
  most_names_ = std::max(most_names_, 2 * names_.size());
}

std::vector<LocalName*> Names::Pending() {
  std::vector<LocalName*> pending;
  ForEachPending([&](LocalName* name) { pending.push_back(name); });
  return pending;
}

}  // namespace hvd::rt
