// SPDX-License-Identifier: Apache-2.0
// hvdrun's driver: production decisions (JobState with its membership, epochs and rendezvous;
// HostBook), with what reaches hosts and brings words to them simulated.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/discovery/host_book.h"
#include "cli/job/job_state.h"
#include "tests/simulator/elastic/world.h"

namespace hvd::elastic_simulator {

class Driver : public DriverSide, public Actor {
 public:
  explicit Driver(World* world);
  ~Driver() override;

  void Begin();
  bool finished() const { return state_.finished(); }
  const cli::JobFacts& facts() const { return state_.facts(); }
  // When the job began to end.
  const std::vector<HeldCommit>& held_at_end() const { return held_at_end_; }
  int epochs_proposed() const { return static_cast<int>(hosts_of_.size()); }

  // Time that a deadline of the job's has come.
  bool Ready() const override;
  void Step() override;

  void Heard(int host, const v1::Event& event) override;
  void LinkEnded(int host) override;
  void Silent(int host) override;
  void Lists(const std::vector<ListedHost>& hosts) override;
  const std::vector<int>& HostsOf(uint64_t epoch) const override { return hosts_of_.at(epoch); }

 private:
  void CarryOut();
  void CarryOut(const cli::Action& action);
  void Reach(const cli::Action& action);
  void Answer(int host);
  void Prepare(int host);
  void Send(const cli::Action& action);
  void SendTo(int host, v1::Command command);
  void Lose(int host, const std::string& why);
  void Breaks();
  void Note(int host, const v1::Event& event);
  void NoteDeath(int host, uint64_t member, bool counts, uint64_t commit);
  void NoteRetired(int host, const v1::RetireSlot& retire);
  void NoteProposal(const v1::EpochPropose& propose);
  bool KeepsMembers(int host) const;
  std::vector<HeldCommit> Held() const;
  void Plant(v1::Command* command);
  bool Hides(const v1::Event& event);

  World* const world_;
  cli::JobState state_;
  cli::HostBook book_;
  std::map<uint64_t, std::vector<int>> hosts_of_;  // by epoch
  std::set<int> greeted_;
  std::set<int> gone_;                  // hosts that are given up, or were let go
  std::set<int> let_go_;                // asked to stop, or wanted back: no failure of theirs
  std::map<uint64_t, double> retired_;  // members, and when
  std::map<int, std::map<int, uint64_t>> member_at_;  // by host and slot
  std::set<uint64_t> dead_;
  std::set<uint64_t> broken_;  // their links
  std::set<uint64_t> hidden_;  // deaths that a mutant hides
  uint64_t newest_started_ = 0;
  bool ends_ = false;
  std::vector<HeldCommit> held_at_end_;
  double armed_ = 0;
};

}  // namespace hvd::elastic_simulator
