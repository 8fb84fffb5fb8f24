// SPDX-License-Identifier: Apache-2.0
// When the next epoch comes: whether the newest is to change, who is waited for, and when there are
// too few ranks or too many epochs. Pure.
#pragma once

#include <string>

#include "cli/front/words/run_options.h"
#include "cli/membership/deaths.h"
#include "cli/membership/epochs.h"
#include "cli/membership/late_watch.h"
#include "cli/membership/places.h"
#include "cli/membership/roster.h"
#include "cli/membership/shares.h"
#include "cli/membership/staying.h"
#include "cli/membership/wants.h"

namespace hvd::cli {

class NextWatch {
 public:
  // All of them outlive it.
  struct Parts {
    const ElasticOptions* options;
    const Roster* roster;
    Epochs* epochs;
    const Shares* shares;
    Staying* staying;
    Deaths* deaths;
    const Places* places;
    LateWatch* late;
    Wants* wants;
  };
  // `np`: so many ranks make the first epoch.
  NextWatch(int np, const Parts& parts) : np_(np), parts_(parts) {}

  // Whoever is to come or to go does so where the others lose nothing by it.
  void LookAtLiving(double now);
  void LookForNext(double now);

 private:
  bool GathersStill(int standing, double now);
  void Change(const std::string& text, double now);
  void LetGo(bool over);
  int Needed(int overdue) const;
  int AllThatMayCome() const;
  bool MayPropose(int standing, double now);
  bool MayReset() const;
  void EndByResets();
  void WaitForMore(int standing, int needed, double now);
  void SayWaits(const std::string& what, double now);
  bool HasState() const;
  bool AwaitsState(double now) const;
  void Propose(double now);
  std::string WhoChanges() const;

  const int np_;
  const Parts parts_;
  double gathers_since_ = -1;  // the first joiner waits since then; below 0: none does
  double too_few_since_ = -1;  // below 0: there are enough, or the old epoch is not over
  bool too_few_said_ = false;  // a person has been told, since then
};

}  // namespace hvd::cli
