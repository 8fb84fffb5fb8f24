// SPDX-License-Identifier: Apache-2.0
// Who works for an elastic job: it is told of hosts, members and the time, and answers with what is
// to be done. Pure: no clock (`now` is seconds of any monotonic clock), one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/front/words/run_options.h"
#include "cli/membership/actions.h"
#include "cli/membership/bad_links.h"
#include "cli/membership/cooldown.h"
#include "cli/membership/next_epoch.h"
#include "cli/membership/program_bug.h"
#include "cli/membership/progress.h"
#include "cli/membership/share_budget.h"

namespace hvd {

class Membership {
 public:
  // `np`: so many ranks make the first epoch. `stdin_rank`: as in RunOptions.
  Membership(int np, const ElasticOptions& options, int stdin_rank);

  // Hosts. They are numbered from 0 in the order of kReach, and a number is never used again.
  void Listed(const std::vector<BookHost>& hosts, double now);  // all of them, oldest first
  void HostReady(int host, double now);                         // members may be started there
  void HostGone(int host, const std::string& cause, double now);
  void DrainAsked(int host, const std::string& cause, double now);

  // Members.
  void Stands(uint64_t member, uint64_t after_epoch, double now);
  void Died(uint64_t member, const MemberEnd& end, double now);
  // Its whole end has been told, and its output: its slot may be used again.
  void Freed(uint64_t member, double now);

  // Epochs.
  void Broke(int host, uint64_t epoch, const std::string& cause, double now);  // as `host` says
  // Nothing passes between these hosts, as one of them says: `why`.
  void Unreached(int host, int other, uint64_t epoch, const std::string& why);
  // The others have waited for this one for longer than the person allows: it is replaced.
  void Stalled(uint64_t member, const std::string& why, double now);
  // A member of the newest epoch whom others wait for outside any collective, and since when.
  struct Awaited {
    uint64_t member = 0;
    double since = 0;
    std::string by;  // "the next epoch"
  };
  std::vector<Awaited> WhoIsAwaited() const;
  // The ranks of the host have met in the epoch, and are ready to begin.
  void Ready(int host, uint64_t epoch);
  void Quiet(int host, uint64_t epoch, const KeptCommits& kept, double now);
  void Started(uint64_t epoch, double now);

  void Tick(double now) { Settle(now); }
  double deadline() const { return deadline_; }  // when Tick is due

  std::vector<MembershipAction> TakeActions() { return std::exchange(actions_, {}); }
  // Nobody is added or replaced any more: the members of the last epoch have ended well together.
  bool closed() const { return closed_; }
  bool IsOver(uint64_t epoch) const { return epoch != current_.number || current_.broke; }
  uint64_t epoch() const { return current_.number; }  // the newest that was proposed; 0: none yet
  const std::vector<EpochRecord>& history() const { return history_; }  // epochs that started

 private:
  struct Host {
    enum Phase { kReaching, kReady, kStopping, kGone } phase = kReaching;
    std::string name;
    bool drained = false;
    bool proven = false;    // its ranks have had a part in a commit
    int failed_starts = 0;  // ranks that had none
    int shares = 0;         // as it was told last
    int next_slot = 0;      // to be looked at first for the next member
    KeptCommits kept = {};  // what it had complete when the last epoch had ended
  };
  struct Member {
    int host = 0;
    int slot = 0;
    int share = 0;
    bool alive = true;
    bool holds_slot = true;
    bool lingers = false;  // it is no rank any more, and its process has not ended
    bool stands = false;
    bool retired = false;
    bool given_up = false;  // retired since others waited for it in vain: that is a failure
    bool fell = false;      // it has failed since its epoch was over
    bool proven = false;    // it has had a part in a commit
    double born_at = 0;
    int last_rank = -1;  // in the last epoch that started; -1: it was not in it
    uint64_t epoch = 0;  // the newest that was proposed with it
  };
  struct Epoch {
    uint64_t number = 0;  // 0: none yet
    std::vector<int> hosts;
    std::vector<uint64_t> members;  // by rank
    std::set<int> quiet;
    uint64_t commit = 0;  // where it resumes
    bool started = false;
    bool broke = false;
    bool announced = false;
    bool rolls_back = false;
    bool has_needy = false;  // some of its members come without the state
    bool lost_any = false;   // a member died in it, or a host was lost
    bool judged = false;     // what its end says of its links has been taken
    bool late_told = false;  // a person knows who holds up the next one
    double announced_at = 0;
    std::set<int> ready;                             // hosts
    std::map<std::pair<int, int>, std::string> cut;  // between these hosts nothing passed: why
    double proposed_at = 0;
    double ended_at = 0;  // when it broke, or was announced to change
    std::string text;     // its ranks and hosts, and why it began
  };
  // A listed host, where members may be started.
  struct Place {
    const BookHost* listed = nullptr;
    int host = -1;  // -1: it is not reached
    int free = 0;   // members to be started there
    bool needed = false;
  };

  void Settle(double now);
  void WakeAt(double when, double now);
  void Say(std::string text) { actions_.push_back({MembershipAction::kSay, -1, std::move(text)}); }

  // Hosts and places (membership_places.cc).
  void ChooseStaying();
  void KeepTheState();
  void KeepOneHost(const std::vector<uint64_t>& members);
  std::vector<uint64_t> WhereTheStateIs() const;
  std::vector<Place> FindPlaces(double now) const;
  void ReachAndSpawn(double now);
  void Spawn(const Place& place, double now);
  int FreeSlot(int host) const;
  bool ShareFree(int host, int share) const;
  void StopIdleHosts(const std::vector<Place>& places);
  void FailHost(int host, const std::string& why, double now);
  int LiveHost(const std::string& name) const;
  bool Runs() const;
  int UsableShares(const BookHost& listed) const;
  int SharesAnew(const BookHost& listed) const;
  int MostThatMayCome() const;
  int most() const;

  // Faults that would end one epoch after another (membership_faults.cc).
  static constexpr int kWholeHost = -1;
  void JudgeLinks();
  void ForgetCutLinks();
  int SideToLeaveOut(int one, int other) const;
  void LeaveHostOut(int host, const std::string& why);
  void ForgiveUnlisted();
  void LeaveShareOut(uint64_t member, const std::string& why, double now);
  bool ShareIsOut(const std::string& host, int share) const;
  void NoteKept(int host, uint64_t commit);
  bool NoteFailedStart(uint64_t member, const MemberEnd& end, double now);
  void RenewShares(const std::string& host);
  void SayKept();

  // Ranks that others wait for (membership_late.cc).
  void LookAtLate(double now);
  void LookAtUncome(double now);
  std::vector<std::string> WhoIsLate() const;
  void SayLate(double since, double now);
  bool HasNotCome(const Member& member) const;
  double AwaitedFrom(const Member& member) const;
  int CountOverdue(double now);
  std::string SayUncome() const;
  void SayBeginsWithout();

  // Members' ends (membership_ends.cc).
  void LookAtEnded(double now);
  bool IsLost(uint64_t ended) const;
  bool IsMissed(uint64_t ended) const;
  bool AnyStands() const;
  bool AllEndedWell() const;
  void Close();
  void CountDeath(uint64_t member, const MemberEnd& end, double now);
  bool IsBug(const DeathSeen& seen, uint64_t member, const MemberEnd& end);
  void NoteFailure(std::string text);
  void EndTooFew(const std::string& text);

  // Members (membership.cc).
  void NoteCommit(const KeptCommits& kept);
  void Retire(uint64_t member, bool removed, const std::string& cause);
  bool InCurrent(uint64_t member) const;
  bool LeftCurrent(const MemberEnd& end) const;
  bool Stays(uint64_t member) const { return staying_.count(member) != 0; }
  Member& Of(uint64_t member) { return members_[member - 1]; }
  const Member& Of(uint64_t member) const { return members_[member - 1]; }
  bool Knows(uint64_t member) const { return member > 0 && member <= members_.size(); }

  // Epochs (membership_epochs.cc).
  // Why an epoch ended: what comes first explains what follows it.
  struct Cause {
    enum Order {
      kEnd,
      kFollows,
      kWord
    } order = kEnd;  // a death, one after the abort, a rank's word
    std::string text;
  };
  void Break(int from_host, const Cause& cause, double now);
  void AddCause(const Cause& cause);
  std::vector<std::string> SayCauses() const;
  bool AllQuiet() const;
  bool UnstartedIsQuiet(int host) const;
  void LookAtLiving(double now);
  void Change(const std::string& text, double now);
  void LookForNext(double now);
  bool SurvivorsStand() const;
  bool GathersStill(size_t standing, double now);
  void WaitForMore(size_t standing, int needed, double now);
  bool MayPropose(size_t standing, double now);
  void Propose(double now);
  std::set<uint64_t> Standing() const;
  bool MayBeCommitted() const;
  bool NoHostHasState() const;
  void EndWithoutState();
  bool AwaitsState(double now) const;
  bool WillSpawnAtState(double now) const;
  NextEpoch World(const std::set<uint64_t>& members) const;
  std::string WhoChanges() const;
  void End(MembershipEnd end, uint64_t member, std::string text);
  std::string History() const;

  const int np_;
  const ElasticOptions options_;
  const int stdin_rank_;
  std::vector<BookHost> list_;
  std::vector<Host> hosts_;
  std::vector<Member> members_;  // by member - 1
  std::set<uint64_t> staying_;   // living members that the next epoch is to have
  std::set<uint64_t> kept_;      // of them those that are to go as soon as others have the state
  Epoch current_;
  std::vector<uint64_t> last_started_;  // members of the last epoch that started, by rank
  std::vector<int> last_hosts_;         // that had it
  bool last_broke_ = false;             // it broke: the next one rolls back
  std::vector<Cause> causes_;           // since it started
  std::vector<std::string> failures_;   // the last ones, for the verdict
  std::vector<EpochRecord> history_;
  std::vector<MembershipAction> actions_;
  Cooldown cooldown_;
  ShareBudget budget_;
  ProgramBug bug_;
  Progress progress_;
  BadLinks links_;
  std::set<std::string> left_out_;  // hosts, until the list has been without them
  // By host and share, or kWholeHost: how many ranks in a row have failed there before they had a
  // part in a commit.
  std::map<std::pair<std::string, int>, int> failed_starts_;
  bool kept_told_ = false;  // a person knows that members stay whose host is to go
  uint64_t newest_commit_ = 0;
  // Members that have ended with code 0, while nobody knows yet whether others need them.
  std::map<uint64_t, MemberEnd> ended_well_;
  // The last whose share or host is left out for its deaths, until the job gets on.
  struct Culprit {
    uint64_t member = 0;   // 0: there is none
    bool outside = false;  // it was somebody else's doing
    std::string what;
  } culprit_;
  double ended_at_ =
      -1;  // when the last started epoch broke, or its change was announced; below 0: it goes on
  double first_stood_at_ = -1;   // the job's first member has come; below 0: none has
  double gathers_since_ = -1;    // the first joiner waits since then; below 0: none does
  double too_few_since_ = -1;    // below 0: there are enough, or the old epoch is not over
  bool too_few_said_ = false;    // a person has been told, since then
  bool begins_without_ = false;  // the first epoch does not wait for all: a person has been told
  bool closed_ = false;
  bool ended_ = false;
  double deadline_ = std::numeric_limits<double>::infinity();
};

}  // namespace hvd
