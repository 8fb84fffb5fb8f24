// SPDX-License-Identifier: Apache-2.0
#include "cli/membership/link_judge.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/membership/faults/link_words.h"

namespace hvd::cli {

// Where somebody has died or a host was lost, that is the reason for all that did not come.
bool LinkJudge::Judge() {
  CurrentEpoch& epoch = epochs_->current();
  if (std::exchange(epoch.judged, true)) return false;
  // All have: one alone may have written its part, and waited for the others.
  const bool got_on = std::all_of(epoch.hosts.begin(), epoch.hosts.end(), [&](int host) {
    return roster_->host(host).kept.newest > epoch.commit;
  });
  if (got_on) ForgetCut();
  if (epoch.lost_any) return false;
  for (const auto& [link, why] : epoch.cut) {
    const std::string& one = roster_->host(link.first).name;
    const std::string& other = roster_->host(link.second).name;
    if (links_.Failed(one, other) < BadLinks::kEpochs) continue;
    if (shares_->IsLeftOut(one) || shares_->IsLeftOut(other)) continue;
    shares_->LeaveHostOut(SideToLeaveOut(link.first, link.second),
                          absl::StrFormat("%s, for which %d epochs in a row have ended; %s",
                                          SayLink(one, other, why), BadLinks::kEpochs, kLinkHint));
  }
  return !epoch.cut.empty();
}

void LinkJudge::ForgetCut() {
  const std::vector<int>& hosts = epochs_->current().hosts;
  for (const int one : hosts) {
    for (const int other : hosts) {
      links_.Works(roster_->host(one).name, roster_->host(other).name);
    }
  }
}

// The one without the state; that which is cut off from more; the younger.
int LinkJudge::SideToLeaveOut(int one, int other) const {
  const auto& list = shares_->list();
  const auto worth = [&](int host) {
    const std::string& name = roster_->host(host).name;
    const auto listed = std::find_if(list.begin(), list.end(),
                                     [&name](const BookHost& each) { return each.name == name; });
    const bool has_state = roster_->host(host).kept.newest > 0;
    return std::make_tuple(has_state, -links_.Of(name), list.end() - listed);
  };
  return worth(one) < worth(other) ? one : other;
}

}  // namespace hvd::cli
