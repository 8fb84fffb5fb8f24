// SPDX-License-Identifier: Apache-2.0
// The lower parts of a membership for tests, with hosts that are ready and members that live.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cli/membership/epochs.h"
#include "cli/membership/roster.h"
#include "cli/membership/shares.h"
#include "cli/membership/staying.h"
#include "cli/membership/wants.h"

namespace hvd::cli {

struct PartsTable {
  explicit PartsTable(const ElasticOptions& options = {}, int most = 100)
      : epochs(&roster, &wants),
        shares(options, &roster, &epochs, &wants),
        staying(most, {&roster, &epochs, &shares, &wants}) {}

  // Each with so many shares, and a member in each.
  void AddHosts(const std::vector<BookHost>& hosts) {
    shares.Listed(hosts);
    for (const BookHost& listed : hosts) {
      const int host = roster.AddHost(listed.name);
      roster.host(host).phase = RosterHost::kReady;
      for (int share = 0; share < listed.shares; ++share) {
        RosterMember member;
        member.host = host;
        member.slot = member.share = share;
        roster.Add(member);
      }
    }
  }
  // The next epoch has these members, and starts.
  void Begin(const std::set<uint64_t>& members) {
    epochs.Adopt(ProposeNext(epochs.World(members)), "", 1);
    epochs.Start(1);
  }
  std::vector<std::string> Said() {
    std::vector<std::string> said;
    for (const MembershipAction& action : wants.Take()) {
      if (action.kind == MembershipAction::kSay) said.push_back(action.text);
    }
    return said;
  }

  Roster roster;
  Wants wants;
  Epochs epochs;
  Shares shares;
  Staying staying;
};

}  // namespace hvd::cli
