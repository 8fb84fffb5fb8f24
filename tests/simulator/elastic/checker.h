// SPDX-License-Identifier: Apache-2.0
// What must hold in every run. The simulation tells what happens; the first violation is kept.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hvd/v1/link_a.pb.h"
#include "tests/simulator/elastic/model.h"
#include "tests/simulator/elastic/scenario.h"
#include "tests/simulator/elastic/violation.h"

namespace hvd::elastic_simulator {

// A worker in an epoch, as the checker knows it.
struct Part {
  uint64_t member = 0;
  uint64_t epoch = 0;
  int host = 0;            // its number
  bool host_lost = false;  // hvdrun has given it up
};

// The commits that a host holds, as they are in its files.
struct HeldCommit {
  int host = 0;
  uint64_t newest = 0;  // complete
};

class Checker {
 public:
  explicit Checker(const Scenario& scenario) : scenario_(scenario) {}

  Violation violation() const { return violation_; }
  const std::string& text() const { return text_; }
  void Fail(Violation violation, const std::string& text);

  // Acts and news of hvdrun's driver.
  void Reaches(const std::string& host, double now);
  void HostFailed(const std::string& host, double now);
  // No member is started there any more on a share; it may have been the host's last.
  void ShareOut(const std::string& host, double now) { out_[host] = now; }
  void Spawns(int host, const v1::SpawnSlots& spawn);
  void Proposes(const v1::EpochPropose& propose, const std::vector<HeldCommit>& held);
  // True: the share's budget is used up.
  bool HearsOfDeath(uint64_t member, bool counts, uint64_t commit);
  void HearsOfCommit(uint64_t commit);
  void Starts(uint64_t epoch) { epochs_[epoch].started = true; }
  void Announces(uint64_t epoch) { epochs_[epoch].announced = true; }

  // Events on hosts.
  void EpochCame(int host, uint64_t epoch);
  void Broke(uint64_t epoch);

  // News that workers are told, and their acts.
  void Told(const Part& part, const std::string& words);
  void Begins(const Part& part);
  void Writes(const Part& part);
  void WritesCommit(const Part& part, uint64_t number, const Model& model);
  void Completes(const Part& part);
  void Agreed(const Part& part, int index, bool change);
  void Returned(const Part& part, uint64_t number, const Model& model);
  void Updated(const Part& part, const Model& model);
  void Synced(const Part& part, const Model& model);
  // The state that an epoch that goes back resumes with; null: none was written.
  const Model* Resumes(uint64_t epoch) const;
  void EndsWell(const Model& model);
  // It calls hvd_init; hvdrun has asked for its end.
  void Joins(uint64_t member) { joined_.insert(member); }
  void Retires(uint64_t member) { retired_.insert(member); }
  // With code 0, wherever it was.
  void EndsWithZero(uint64_t member) { zeros_.insert(member); }
  // The job's end is told to be a good one. True: of a program that never called hvd_init.
  bool JobEndsWell();
  // The epoch ends since nothing passes between these hosts, or since the program fails at its
  // start on one; a rank of it has done its part of a commit.
  void CutEnds(uint64_t epoch, const std::string& one, const std::string& other);
  void FailsStart(const Part& part, const std::string& host);
  void GetsOn(const Part& part);
  // The job's end is told to be a failure of this member's.
  void JobEndsBadly(uint64_t member);
  void EndsWithoutState(const std::vector<HeldCommit>& held);

  uint64_t newest_begun() const { return newest_begun_; }
  int recoveries_without_survivors() const { return without_survivors_; }
  int lost_states() const { return lost_states_; }
  int rollbacks() const { return rollbacks_; }
  int planned() const { return planned_; }

 private:
  struct Seat {
    int host = 0;
    int slot = 0;
    int share = 0;
  };
  struct Epoch {
    v1::EpochPropose propose;
    std::string words;
    bool started = false;  // Go was sent
    bool begun = false;    // Go came to a worker
    bool broke = false;
    bool is_cut = false;          // between two of its hosts
    bool is_left = false;         // by a rank whose program failed at its start
    std::set<uint64_t> did_part;  // of a commit: members
    bool gets_on = false;
    bool announced = false;       // that its members are to change
    std::map<int, bool> changes;  // by agreement
    bool has_synced = false;
    Model synced;
    bool has_updated = false;
    Model updated;
  };

  void CheckPlaces(const v1::EpochPropose& propose, const Epoch& before);
  void CheckState(const v1::EpochPropose& propose);
  void CheckKeeps(const v1::EpochPropose& propose, const Epoch& before,
                  const std::vector<HeldCommit>& held);
  bool Holds(const HeldCommit& host, const Epoch& before) const;
  void CheckResumed(uint64_t number, const Epoch& epoch);
  void CheckUnbegun();
  void CheckCuts(const v1::EpochPropose& propose);
  const Epoch* LastStartedBefore(uint64_t epoch) const;
  std::vector<uint64_t> MembersOf(const v1::EpochPropose& propose) const;

  const Scenario scenario_;
  Violation violation_ = Violation::kNone;
  std::string text_;
  std::map<uint64_t, Seat> members_;
  std::map<uint64_t, Epoch> epochs_;
  std::map<int, uint64_t> came_;  // by host: the newest epoch that was proposed to it
  uint64_t newest_begun_ = 0;
  int begun_ = 0;
  std::map<uint64_t, std::map<uint64_t, Model>> written_;  // by commit, by epoch
  uint64_t returned_ =
      0;  // the newest commit that has returned anywhere and was not lost with its hosts
  Model returned_model_;
  std::map<std::string, double> failed_, out_;       // by host's name
  std::map<std::pair<int, int>, int> deaths_;        // by host and share, since the newest commit
  uint64_t heard_steps_ = 0;                         // the newest step that a commit was heard of
  std::set<uint64_t> zeros_;                         // members that have ended with code 0
  std::set<uint64_t> joined_, retired_;              // members
  using Link = std::pair<std::string, std::string>;  // hosts' names, the smaller first
  std::map<Link, std::set<uint64_t>> cut_;           // epochs in a row that ended for it alone
  std::map<std::string, std::set<int>> bad_starts_;  // by host's name: its numbers
  int without_survivors_ = 0, lost_states_ = 0, rollbacks_ = 0, planned_ = 0;
};

}  // namespace hvd::elastic_simulator
