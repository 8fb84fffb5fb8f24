// SPDX-License-Identifier: Apache-2.0
// The living members that the next epoch is to have: who stays, and who stays only since nobody
// else has the state of the job. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cli/membership/epochs.h"
#include "cli/membership/roster.h"
#include "cli/membership/shares.h"
#include "cli/membership/wants.h"

namespace hvd::cli {

class Staying {
 public:
  // All of them outlive it.
  struct Parts {
    Roster* roster;
    const Epochs* epochs;
    const Shares* shares;
    Wants* wants;
  };
  // `most`: so many members at most.
  Staying(int most, const Parts& parts) : most_(most), parts_(parts) {}

  int most() const { return most_; }
  const std::set<uint64_t>& members() const { return members_; }
  bool Has(uint64_t member) const { return members_.count(member) != 0; }
  // Of them those that wait for the next epoch.
  std::set<uint64_t> Standing() const;
  // Those that are to go as soon as others have the state.
  const std::set<uint64_t>& kept() const { return kept_; }
  // Whether all that live of the newest epoch and are to go on wait for the next.
  bool SurvivorsStand() const;

  void Choose();
  void Add(uint64_t member) { members_.insert(member); }
  // It ends, for `cause`. `removed`: nobody has failed, and it is refused the next epoch.
  void Retire(uint64_t member, bool removed, const std::string& cause);
  // Tells a person once that members stay whose host is to go. `over`: the job is.
  void SayKept(bool over);

 private:
  void KeepTheState();
  void KeepOneHost(const std::vector<uint64_t>& members);
  std::vector<uint64_t> WhereTheStateIs() const;

  const int most_;
  const Parts parts_;
  std::set<uint64_t> members_;
  std::set<uint64_t> kept_;
  bool kept_told_ = false;
};

}  // namespace hvd::cli
