// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/elastic/checker.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::elastic_simulator {
namespace {

constexpr int kDeathsOfShare = 3;
constexpr size_t kCutEpochs = 3;
// Until another host is known to work, a host's failures are its shares'.
constexpr size_t kBadStarts = 5;

}  // namespace

void Checker::Fail(Violation violation, const std::string& text) {
  if (violation_ != Violation::kNone) return;
  violation_ = violation;
  text_ = absl::StrCat("elastic seed ", scenario_.seed, ": ", NameOf(violation), ": ", text);
}

// ---- the driver ----

// One that cools already need not cool longer.
void Checker::HostFailed(const std::string& host, double now) {
  const double least = scenario_.options.cooldown_least_s;
  const auto out = out_.find(host);
  if (out != out_.end() && now < out->second + scenario_.options.cooldown_most_s) return;
  const auto [failed, is_first] = failed_.emplace(host, now);
  if (!is_first && now >= failed->second + least) failed->second = now;
}

void Checker::Reaches(const std::string& host, double now) {
  const auto bad = bad_starts_.find(host);
  if (bad != bad_starts_.end() && bad->second.size() >= kBadStarts) {
    Fail(Violation::kLimits, absl::StrCat("host ", host, " is reached again, where the program ",
                                          "fails each time before it has the state"));
  }
  const auto failed = failed_.find(host);
  if (failed == failed_.end() || now >= failed->second + scenario_.options.cooldown_least_s) return;
  Fail(Violation::kLimits, absl::StrCat("host ", host, " is reached again ", now - failed->second,
                                        " s after it failed"));
}

void Checker::Spawns(int host, const v1::SpawnSlots& spawn) {
  for (const v1::Seat& seat : spawn.seats()) {
    const Seat place = {host, static_cast<int>(seat.slot()), static_cast<int>(seat.share())};
    if (!members_.emplace(seat.member(), place).second) {
      Fail(Violation::kMember, absl::StrCat("member ", seat.member(), " is started twice"));
    }
  }
}

// The job gets on where its program has come to a step that it had not reached before.
void Checker::HearsOfCommit(uint64_t commit) {
  const auto written = written_.find(commit);
  if (written == written_.end() || written->second.empty()) return;
  const uint64_t steps = written->second.rbegin()->second.steps;
  if (steps <= heard_steps_) return;
  heard_steps_ = steps;
  deaths_.clear();
}

bool Checker::HearsOfDeath(uint64_t member, bool counts, uint64_t commit) {
  HearsOfCommit(commit);
  if (!counts) return false;
  const Seat& seat = members_[member];
  const int deaths = ++deaths_[{seat.host, seat.share}];
  if (deaths <= kDeathsOfShare) return deaths == kDeathsOfShare;
  Fail(Violation::kLimits, absl::StrCat("more than ", kDeathsOfShare, " members died on host ",
                                        seat.host, ", share ", seat.share, " without a commit"));
  return true;
}

std::vector<uint64_t> Checker::MembersOf(const v1::EpochPropose& propose) const {
  std::vector<uint64_t> members;
  for (const v1::EpochHost& host : propose.hosts()) {
    for (const v1::Seat& seat : host.members()) members.push_back(seat.member());
  }
  return members;
}

const Checker::Epoch* Checker::LastStartedBefore(uint64_t number) const {
  for (auto each = epochs_.lower_bound(number); each != epochs_.begin();) {
    --each;
    if (each->second.started) return &each->second;
  }
  return nullptr;
}

void Checker::Proposes(const v1::EpochPropose& propose, const std::vector<HeldCommit>& held) {
  const uint64_t number = propose.epoch();
  if (!epochs_.empty() && number <= epochs_.rbegin()->first) {
    Fail(Violation::kWords, absl::StrCat("epoch ", number, " is proposed behind a newer one"));
  }
  CheckState(propose);
  if (const Epoch* const before = LastStartedBefore(number); before != nullptr) {
    CheckPlaces(propose, *before);
    CheckKeeps(propose, *before, held);
    const bool drains = scenario_.options.change == cli::MembershipChange::kDrain;
    const bool broke = before->broke || before->is_cut || before->is_left;
    if (drains && propose.rolls_back() && propose.survivors() > 0 && !broke) {
      Fail(Violation::kLostSteps,
           absl::StrCat("epoch ", number, " goes back although the one before did not break"));
    }
  }
  CheckCuts(propose);
  epochs_[number].propose = propose;
}

// An epoch in which somebody died says nothing of its links.
void Checker::CheckCuts(const v1::EpochPropose& propose) {
  std::set<std::string> names;
  for (const v1::EpochHost& host : propose.hosts()) names.insert(host.name());
  for (auto& [link, epochs] : cut_) {
    std::erase_if(epochs, [this](uint64_t epoch) { return epochs_[epoch].broke; });
    if (epochs.size() < kCutEpochs || names.count(link.first) + names.count(link.second) < 2) {
      continue;
    }
    Fail(Violation::kLimits, absl::StrCat("epoch ", propose.epoch(), " is of ", link.first, " and ",
                                          link.second, " again, between which nothing passes"));
  }
}

void Checker::CutEnds(uint64_t epoch, const std::string& one, const std::string& other) {
  epochs_[epoch].is_cut = true;
  if (!epochs_[epoch].gets_on) cut_[std::minmax(one, other)].insert(epoch);
}

// Once all have: one alone may wait for the others.
void Checker::GetsOn(const Part& part) {
  Epoch& epoch = epochs_[part.epoch];
  epoch.did_part.insert(part.member);
  if (epoch.did_part.size() < MembersOf(epoch.propose).size()) return;
  epoch.gets_on = true;
  for (const v1::EpochHost& host : epoch.propose.hosts()) bad_starts_.erase(host.name());
  for (const v1::EpochHost& one : epoch.propose.hosts()) {
    for (const v1::EpochHost& other : epoch.propose.hosts()) {
      cut_.erase(std::minmax(one.name(), other.name()));
    }
  }
}

void Checker::FailsStart(const Part& part, const std::string& host) {
  epochs_[part.epoch].is_left = true;
  bad_starts_[host].insert(part.host);
}

// Checks who has the state, and who gets it from whom.
void Checker::CheckState(const v1::EpochPropose& propose) {
  const int size = static_cast<int>(MembersOf(propose).size());
  const std::set<int> needy(propose.needy().begin(), propose.needy().end());
  const int root = propose.root();
  if (root < 0 || root >= size || needy.count(root) != 0) {
    Fail(Violation::kPlaces, absl::StrCat("the root of epoch ", propose.epoch(), " is rank ", root,
                                          ", which has no state to give"));
  }
  if (needy.count(0) != 0 && static_cast<int>(needy.size()) < size) {
    Fail(Violation::kPlaces,
         absl::StrCat("rank 0 of epoch ", propose.epoch(), " lacks a state that others have"));
  }
}

// Survivors stay where they are, in the order in which they were.
void Checker::CheckPlaces(const v1::EpochPropose& propose, const Epoch& before) {
  const std::vector<uint64_t> old = MembersOf(before.propose);
  std::ptrdiff_t last = -1;
  uint32_t survivors = 0;
  for (const v1::EpochHost& host : propose.hosts()) {
    for (const v1::Seat& seat : host.members()) {
      const Seat& known = members_[seat.member()];
      if (known.host != static_cast<int>(host.host()) ||
          known.share != static_cast<int>(seat.share()) ||
          known.slot != static_cast<int>(seat.slot())) {
        Fail(Violation::kPlaces, absl::StrCat("member ", seat.member(),
                                              " has another place in epoch ", propose.epoch()));
      }
      const auto was = std::find(old.begin(), old.end(), seat.member());
      if (was == old.end()) continue;
      ++survivors;
      const std::ptrdiff_t rank = was - old.begin();
      if (rank < last && !propose.rolls_back()) {
        Fail(Violation::kPlaces,
             absl::StrCat("survivors change their order in epoch ", propose.epoch()));
      }
      last = rank;
    }
  }
  if (survivors != propose.survivors()) {
    Fail(Violation::kWords, absl::StrCat("epoch ", propose.epoch(), " has ", survivors,
                                         " survivors and says ", propose.survivors()));
  }
  if (survivors == 0) ++without_survivors_;
}

// A commit that has returned is not lost as long as a host that holds it lives.
void Checker::CheckKeeps(const v1::EpochPropose& propose, const Epoch& before,
                         const std::vector<HeldCommit>& held) {
  (propose.rolls_back() ? rollbacks_ : planned_) += 1;
  if (propose.resume_commit() >= returned_) return;
  for (const HeldCommit& host : held) {
    if (!Holds(host, before)) continue;
    Fail(Violation::kLostCommit,
         absl::StrCat("epoch ", propose.epoch(), " resumes at commit ", propose.resume_commit(),
                      "; commit ", returned_, " has returned, and host ", host.host, " has it"));
  }
  ++lost_states_;
  returned_ = propose.resume_commit();
  const Model* const model = Resumes(propose.epoch());
  returned_model_ = model != nullptr ? *model : Model();
}

// A commit on a host that was not in the epoch before may be of another past.
bool Checker::Holds(const HeldCommit& host, const Epoch& before) const {
  const auto& hosts = before.propose.hosts();
  return host.newest >= returned_ &&
         std::any_of(hosts.begin(), hosts.end(), [&host](const v1::EpochHost& listed) {
           return static_cast<int>(listed.host()) == host.host;
         });
}

void Checker::EndsWithoutState(const std::vector<HeldCommit>& held) {
  const Epoch* const last = LastStartedBefore(~uint64_t{0});
  for (const HeldCommit& host : held) {
    if (last == nullptr || returned_ == 0 || !Holds(host, *last)) continue;
    Fail(Violation::kLostCommit, absl::StrCat("the job ends for a lost state; host ", host.host,
                                              " has commit ", host.newest));
  }
}

// ---- hosts ----

void Checker::EpochCame(int host, uint64_t epoch) { came_[host] = std::max(came_[host], epoch); }

void Checker::Broke(uint64_t epoch) { epochs_[epoch].broke = true; }

// ---- workers ----

void Checker::Told(const Part& part, const std::string& words) {
  std::string& first = epochs_[part.epoch].words;
  if (first.empty()) first = words;
  if (first != words) {
    Fail(Violation::kWords, absl::StrCat("epoch ", part.epoch, " is '", first,
                                         "' to one member and '", words, "' to another"));
  }
}

void Checker::Begins(const Part& part) {
  Epoch& epoch = epochs_[part.epoch];
  if (part.epoch < newest_begun_) {
    if (part.host_lost) return;
    return Fail(Violation::kTwoEpochs,
                absl::StrCat("epoch ", part.epoch, " begins behind epoch ", newest_begun_));
  }
  newest_begun_ = part.epoch;
  if (std::exchange(epoch.begun, true)) return;
  const int limit = scenario_.options.reset_limit;
  if (++begun_ > limit + 1 && limit >= 0) {
    Fail(Violation::kLimits, absl::StrCat(begun_, " epochs began; --reset-limit is ", limit));
  }
  CheckResumed(part.epoch, epoch);
}

void Checker::CheckResumed(uint64_t number, const Epoch& epoch) {
  const uint64_t resume = epoch.propose.resume_commit();
  if (resume == 0 || resume != returned_) return;
  const Model* const model = Resumes(number);
  if (model != nullptr && *model == returned_model_) return;
  Fail(Violation::kContent, absl::StrCat("epoch ", number, " resumes at a commit ", resume,
                                         " that is not the one that has returned"));
}

const Model* Checker::Resumes(uint64_t epoch) const {
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end()) return nullptr;
  const auto commit = written_.find(found->second.propose.resume_commit());
  if (commit == written_.end()) return nullptr;
  const auto behind = commit->second.lower_bound(epoch);
  return behind == commit->second.begin() ? nullptr : &std::prev(behind)->second;
}

void Checker::Writes(const Part& part) {
  if (came_[part.host] <= part.epoch) return;
  Fail(Violation::kLateWrite,
       absl::StrCat("member ", part.member, " of epoch ", part.epoch, " writes on host ", part.host,
                    ", which is in epoch ", came_[part.host]));
}

void Checker::WritesCommit(const Part& part, uint64_t number, const Model& model) {
  Writes(part);
  const auto [entry, is_first] = written_[number].emplace(part.epoch, model);
  if (is_first || entry->second == model) return;
  Fail(Violation::kContent,
       absl::StrCat("ranks write different states as commit ", number, " of epoch ", part.epoch));
}

void Checker::Completes(const Part& part) {
  if (part.epoch >= newest_begun_ || part.host_lost) return;
  Fail(Violation::kTwoEpochs,
       absl::StrCat("member ", part.member, " completes a collective of epoch ", part.epoch,
                    "; epoch ", newest_begun_, " has begun"));
}

void Checker::Agreed(const Part& part, int index, bool change) {
  const auto [entry, is_first] = epochs_[part.epoch].changes.emplace(index, change);
  if (is_first || entry->second == change) return;
  Fail(Violation::kUpdated,
       absl::StrCat("some ranks of epoch ", part.epoch, " are told of a change at their agreement ",
                    index, ", and others are not"));
}

void Checker::Returned(const Part& part, uint64_t number, const Model& model) {
  for (auto next = epochs_.upper_bound(part.epoch); next != epochs_.end(); ++next) {
    if (!next->second.begun) continue;
    const v1::EpochPropose& propose = next->second.propose;
    if (propose.resume_commit() >= number || propose.survivors() == 0) return;
    return Fail(Violation::kLostCommit,
                absl::StrCat("commit ", number, " of epoch ", part.epoch, " returns after epoch ",
                             next->first, " has resumed at ", propose.resume_commit()));
  }
  if (number < returned_) return;
  returned_ = number;
  returned_model_ = model;
}

void Checker::Updated(const Part& part, const Model& model) {
  Epoch& epoch = epochs_[part.epoch];
  if (!epoch.announced) {
    Fail(Violation::kUpdated,
         absl::StrCat("epoch ", part.epoch, " ends for a change that nobody has announced"));
  }
  if (!std::exchange(epoch.has_updated, true)) epoch.updated = model;
  if (!(epoch.updated == model)) {
    Fail(Violation::kContent,
         absl::StrCat("ranks leave epoch ", part.epoch, " for a change with different states"));
  }
}

void Checker::Synced(const Part& part, const Model& model) {
  Epoch& epoch = epochs_[part.epoch];
  if (!std::exchange(epoch.has_synced, true)) epoch.synced = model;
  if (!(epoch.synced == model)) {
    return Fail(Violation::kContent,
                absl::StrCat("after the sync of epoch ", part.epoch, " ranks are at steps ",
                             epoch.synced.steps, " and ", model.steps, " of different states"));
  }
  const Model* const resumed = Resumes(part.epoch);
  if (epoch.propose.rolls_back() && resumed != nullptr && !(*resumed == model)) {
    Fail(Violation::kContent, absl::StrCat("epoch ", part.epoch, " goes on from step ", model.steps,
                                           " and not from commit ", epoch.propose.resume_commit()));
  }
  const Epoch* const before = LastStartedBefore(part.epoch);
  const bool keeps = before != nullptr && !epoch.propose.rolls_back() &&
                     epoch.propose.survivors() > 0 && before->has_updated;
  if (keeps && !(before->updated == model)) {
    Fail(Violation::kLostSteps,
         absl::StrCat("epoch ", part.epoch, " goes on from step ", model.steps,
                      "; the one before was left at step ", before->updated.steps));
  }
}

void Checker::EndsWell(const Model& model) {
  if (static_cast<int>(model.steps) == scenario_.steps) return;
  Fail(Violation::kVerdict,
       absl::StrCat("a member ends well after ", model.steps, " of ", scenario_.steps, " steps"));
}

bool Checker::JobEndsWell() {
  const Epoch* const last = LastStartedBefore(~uint64_t{0});
  if (last == nullptr) {
    CheckUnbegun();
    return true;
  }
  for (const uint64_t member : MembersOf(last->propose)) {
    if (zeros_.count(member) != 0) continue;
    Fail(Violation::kVerdict, absl::StrCat("the job ends well, and member ", member,
                                           " of its last epoch has not ended with code 0"));
  }
  return false;
}

// A death that another has made good is no fault of the job's, also while no epoch has begun.
void Checker::JobEndsBadly(uint64_t member) {
  if (LastStartedBefore(~uint64_t{0}) != nullptr) return;
  const Seat& dead = members_[member];
  for (auto later = members_.upper_bound(member); later != members_.end(); ++later) {
    if (later->second.host != dead.host || later->second.share != dead.share) continue;
    Fail(Violation::kVerdict, absl::StrCat("member ", member, " is blamed, and member ",
                                           later->first, " has come in its place"));
  }
}

// A program that never calls hvd_init has done its work when it has run -np times to its end. A
// member that has called it waited for others, and one that was told to end had no say.
void Checker::CheckUnbegun() {
  int ran = 0;
  for (const uint64_t member : zeros_) ran += joined_.count(member) + retired_.count(member) == 0;
  if (ran >= scenario_.np) return;
  Fail(Violation::kVerdict,
       absl::StrCat("a job ends well that has never begun; ", ran, " of ", scenario_.np,
                    " processes have ended with code 0 without hvd_init"));
}

}  // namespace hvd::elastic_simulator
