// SPDX-License-Identifier: Apache-2.0
// Which of the listed hosts may be used, and which of their shares: who is left alone for a while,
// and who is left out. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/front/words/run_options.h"
#include "cli/membership/actions.h"
#include "cli/membership/epochs.h"
#include "cli/membership/faults/cooldown.h"
#include "cli/membership/faults/share_budget.h"
#include "cli/membership/roster.h"
#include "cli/membership/wants.h"

namespace hvd::cli {

// Starts of a host, or of a share, that come to nothing one after another: so many, and it is left
// out.
inline constexpr int kFailedStarts = 3;

class Shares {
 public:
  // All of them outlive it.
  Shares(const ElasticOptions& options, Roster* roster, const Epochs* epochs, Wants* wants);

  // All hosts that may work for the job, the oldest first.
  void Listed(const std::vector<BookHost>& hosts);
  const std::vector<BookHost>& list() const { return list_; }
  const BookHost* Find(const std::string& host) const;  // nullptr: it is not listed

  // A host.
  void FailHost(int host, const std::string& why, double now);
  // Somebody wants it back. Returns for how long it is left alone.
  double Drain(int host, double now);
  bool Cools(const std::string& host, double now) const { return cooldown_.Cools(host, now); }
  // When it may be tried again.
  double CoolsUntil(const std::string& host) const { return cooldown_.Until(host); }
  void LeaveHostOut(int host, const std::string& why);
  bool IsLeftOut(const std::string& host) const { return left_out_.count(host) != 0; }
  // The host begins anew.
  void Renew(const std::string& host);

  // A share.
  void LeaveOut(uint64_t member, const std::string& why, double now);
  bool IsOut(const std::string& host, int share) const;
  int Usable(const BookHost& listed) const;
  // The same if the host is reached anew.
  int UsableAnew(const BookHost& listed) const;
  // When its next member may be started.
  double Until(const std::string& host, int share) const { return budget_.Until(host, share); }
  // See ShareBudget.
  bool Died(const RosterMember& dead, bool outside, double now);
  void GetsOn() { budget_.GetsOn(); }
  // A rank of the host, or of this share of a host that has worked, has failed before it had a part
  // in a commit. Returns how many have in a row.
  int CountFailedStart(const RosterMember& dead);
  // A host says for itself which commit its ranks have had a part in.
  void NoteKept(int host, uint64_t commit);

  // So many ranks may come at most, as far as anybody knows.
  int MostThatMayCome() const;

 private:
  static constexpr int kWholeHost = -1;

  const bool list_may_change_;
  Roster* const roster_;
  const Epochs* const epochs_;
  Wants* const wants_;
  std::vector<BookHost> list_;
  Cooldown cooldown_;
  ShareBudget budget_;
  std::set<std::string> left_out_;  // hosts, until the list has been without them
  // By host and share, or kWholeHost: how many ranks in a row have failed there before they had a
  // part in a commit.
  std::map<std::pair<std::string, int>, int> failed_starts_;
};

}  // namespace hvd::cli
