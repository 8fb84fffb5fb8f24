// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/numbered_names.h"

#include <algorithm>

namespace hvd::rt {
namespace {

// Submissions for which a name may rest, at least; so names do not come and go in turn.
constexpr uint64_t kLeastRest = 256;
// Names that one without a number makes room for.
constexpr size_t kAtOnce = 64;

}  // namespace

void NumberedNames::Find(LocalName* name, uint64_t round) {
  names_.push_back(name);  // first: there may be no memory
  const uint32_t number = direct_->numbers().Number(*name->name);
  if (number == 0) return names_.pop_back();
  name->direct.ticket = direct_->Latest(number, round);
}

void NumberedNames::Add(LocalName* name) {
  names_.push_back(name);
  // Its entry is there: it has just been executed. Every wait says how else the epoch ended.
  (void)board_.Keep(*name->name).ok();
}

// Where more names than there are numbers come in turn, those that have one keep it. All ranks see
// the same use, and mostly give up the same.
void NumberedNames::GiveUpIdle(uint64_t distance, uint64_t submissions) {
  const uint64_t rest = std::max(2 * distance, kLeastRest);
  if (submissions - oldest_use_ <= rest) return;
  uint64_t oldest = submissions;
  size_t given_up = 0;
  const auto goes = [&](LocalName* name) {
    kEngineLock.AssertHeld();
    const bool rests = name->pending == nullptr && submissions - name->last_use > rest;
    if (!rests || given_up == kAtOnce) {
      oldest = std::min(oldest, name->last_use);
      return false;
    }
    ++given_up;
    const uint32_t number = name->direct.ticket.number;
    name->direct.ticket.number = 0;
    name->prepared = false;  // asks again before its next use
    if (direct_->GiveUp(number)) board_.Release(*name->name);
    return true;
  };
  std::erase_if(names_, goes);
  oldest_use_ = oldest;
}

}  // namespace hvd::rt
