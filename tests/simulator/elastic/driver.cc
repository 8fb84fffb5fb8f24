// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/elastic/driver.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace hvd::elastic_simulator {
namespace {

constexpr double kReachS = 0.1;  // until a host's hello, at most

cli::JobPolicy PolicyOf(const Scenario& scenario) {
  cli::JobPolicy policy;
  policy.start_timeout_s = scenario.start_timeout_s;
  policy.lease_s = scenario.lease_s;
  policy.grace_s = scenario.grace_s;
  policy.elastic = scenario.options;
  policy.np = scenario.np;
  return policy;
}

cli::HostBookRules RulesOf() {
  cli::HostBookRules rules;
  rules.source = "script";
  rules.is_local_host = [](const HostSlots&) { return false; };
  return rules;
}

}  // namespace

Driver::Driver(World* world)
    : world_(world),
      state_(Topology(), PolicyOf(world->scenario), world->scheduler.now()),
      book_(RulesOf(), {}) {
  world->driver = this;
  world->scheduler.Add(this);
}

Driver::~Driver() { world_->scheduler.Remove(this); }

// The first list has enough places; the rest is found later.
void Driver::Begin() {
  const std::vector<ListedHost>& all = world_->scenario.hosts;
  std::vector<ListedHost> first;
  int slots = 0;
  Random& random = world_->scheduler.random();
  for (const ListedHost& host : all) {
    if (slots >= world_->scenario.np && random.OneIn(2)) break;
    first.push_back(host);
    slots += host.slots;
  }
  Lists(first);
  if (first.size() == all.size()) return;
  const double later = random.Seconds(0, 0.5);
  world_->scheduler.After(later, [this] { Lists(world_->scenario.hosts); });
}

void Driver::Lists(const std::vector<ListedHost>& hosts) {
  world_->Tell(absl::StrCat("hosts: ", HostsText(hosts)));
  const cli::HostNews news = book_.Take(HostsText(hosts));
  if (!news.fatal.empty()) state_.DiscoveryFailed(news.fatal, world_->scheduler.now());
  if (news.changed) state_.Discovered(book_.hosts(), world_->scheduler.now());
  CarryOut();
}

bool Driver::Ready() const { return world_->scheduler.now() >= state_.deadline(); }

void Driver::Step() {
  state_.Tick(world_->scheduler.now());
  CarryOut();
}

// ---- what hosts say ----

void Driver::Heard(int host, const v1::Event& event) {
  if (gone_.count(host) != 0) return;
  if (world_->mutant == Mutant::kDeathUntold && Hides(event)) return;
  Note(host, event);
  if (world_->tells) world_->Tell(absl::StrCat("host ", host, " says: ", event.ShortDebugString()));
  const double now = world_->scheduler.now();
  if (event.has_rank_exited()) {
    const int index = state_.facts().IndexOf(event.rank_exited().member());
    for (int stream = 0; stream < 2; ++stream) state_.StreamMoved(index, true, now);
  }
  if (event.has_stopped()) gone_.insert(host);
  if (event.has_drain_asked()) {
    world_->checker.HostFailed(world_->hosts[host]->name(), now);
    let_go_.insert(host);
  }
  if (event.has_launch_failed()) {
    world_->checker.HostFailed(world_->hosts[host]->name(), now);
    Breaks();
  }
  if (event.has_lease_ended()) {
    world_->counts.Count("lease end heard");
    Breaks();
  }
  state_.Heard(host, event, now);
  CarryOut();
}

void Driver::Note(int host, const v1::Event& event) {
  if (event.has_member_died()) {
    const v1::MemberDied& died = event.member_died();
    const bool clean = died.exit_code() == 0 && died.signal() == 0;
    const bool first = dead_.insert(died.member()).second;
    const bool counts = first && !clean && !ends_ && retired_.count(died.member()) == 0;
    NoteDeath(host, died.member(), counts, died.commit());
  } else if (event.has_host_quiet()) {
    world_->checker.HearsOfCommit(event.host_quiet().commit());
  } else if (event.has_rank_broke()) {
    world_->counts.Count("broken link heard");
    const uint64_t member = event.rank_broke().member();
    broken_.insert(member);
    NoteDeath(host, member, !ends_ && dead_.count(member) == 0 && retired_.count(member) == 0, 0);
  }
}

void Driver::NoteDeath(int host, uint64_t member, bool counts, uint64_t commit) {
  if (!world_->checker.HearsOfDeath(member, counts, commit)) return;
  world_->checker.ShareOut(world_->hosts[host]->name(), world_->scheduler.now());
}

void Driver::LinkEnded(int host) { Lose(host, "its link has ended"); }

void Driver::Silent(int host) {
  world_->counts.Count("host silent");
  Lose(host, "nothing was heard of it");
}

void Driver::Lose(int host, const std::string& why) {
  world_->Tell(absl::StrCat("host ", host, " is lost: ", why));
  if (!gone_.insert(host).second) return;
  world_->counts.Count("host lost");
  if (let_go_.count(host) == 0) {
    world_->checker.HostFailed(world_->hosts[host]->name(), world_->scheduler.now());
  }
  world_->hosts[host]->lost = true;
  Breaks();
  state_.HostLost(host, why, world_->scheduler.now());
  CarryOut();
}

// A lost host ends what it was in.
void Driver::Breaks() {
  if (!hosts_of_.empty()) world_->checker.Broke(hosts_of_.rbegin()->first);
  if (newest_started_ != 0) world_->checker.Broke(newest_started_);
}

// ---- what the job wants ----

void Driver::CarryOut() {
  for (auto actions = state_.TakeActions(); !actions.empty(); actions = state_.TakeActions()) {
    for (const cli::Action& action : actions) CarryOut(action);
  }
  const double deadline = state_.deadline();
  if (std::isfinite(deadline) && deadline != armed_) {
    armed_ = deadline;
    world_->scheduler.At(deadline, [] {});
  }
}

void Driver::CarryOut(const cli::Action& action) {
  switch (action.kind) {
    case cli::Action::kPrepare:
      return Prepare(action.host);
    case cli::Action::kSend:
      return Send(action);
    case cli::Action::kSay:
      if (action.text.find("left out: no data passes") != std::string::npos) {
        world_->counts.Count("left out for a cut link");
      }
      if (action.text.find("is left out: rank") != std::string::npos) {
        world_->counts.Count("left out for failed starts");
      }
      return world_->Tell(action.text);
    case cli::Action::kOverdue: {
      cli::HostFact fault;
      fault.cause = "it does not answer";
      world_->checker.HostFailed(world_->hosts[action.host]->name(), world_->scheduler.now());
      gone_.insert(action.host);
      world_->hosts[action.host]->lost = true;
      return state_.HostNotStarted(action.host, fault, world_->scheduler.now());
    }
    case cli::Action::kReach:
      return Reach(action);
    case cli::Action::kDrop:
      gone_.insert(action.host);
      return world_->hosts[action.host]->LinkEnds();
  }
}

void Driver::Reach(const cli::Action& action) {
  const double now = world_->scheduler.now();
  world_->checker.Reaches(action.target.name, now);
  world_->Progress();
  if (action.host != static_cast<int>(world_->hosts.size())) {
    return world_->checker.Fail(Violation::kMember, "a host's number is used twice");
  }
  world_->hosts.push_back(std::make_unique<Host>(world_, action.host, action.target.name));
  world_->counts.Count("host reached");
  const double later = world_->scheduler.random().Seconds(0, kReachS);
  world_->scheduler.After(later, [this, host = action.host] { Answer(host); });
}

// Its hello; or none comes, or the remote shell says why not.
void Driver::Answer(int host) {
  if (gone_.count(host) != 0) return;
  const double now = world_->scheduler.now();
  if (!world_->faults.unreachable()) {
    greeted_.insert(host);
    world_->hosts[host]->Greet();
    state_.HostGreeted(host, now);
    return CarryOut();
  }
  world_->counts.Count("host not reached");
  if (world_->scheduler.random().OneIn(2)) return;  // it is overdue some day
  gone_.insert(host);
  world_->hosts[host]->lost = true;
  world_->checker.HostFailed(world_->hosts[host]->name(), now);
  cli::HostFact fault;
  fault.cause = "no route to it";
  state_.HostNotStarted(host, fault, now);
  CarryOut();
}

void Driver::Prepare(int host) {
  v1::Command command;
  v1::PrepareHost& prepare = *command.mutable_prepare_host();
  prepare.set_host(host);
  prepare.set_name(world_->hosts[host]->name());
  prepare.set_elastic(true);
  prepare.set_lease_s(world_->scenario.lease_s);
  prepare.set_grace_s(world_->scenario.grace_s);
  prepare.set_slots(1);  // those who are spawned say into how many shares
  prepare.set_gpus_per_rank(0);
  prepare.set_unbound(true);
  prepare.mutable_program()->add_argv("train");
  prepare.set_epoch_secret(std::string(32, 's'));
  SendTo(host, std::move(command));
}

void Driver::Send(const cli::Action& action) {
  v1::Command command = action.command;
  if (command.has_epoch_propose()) NoteProposal(command.epoch_propose());
  if (command.has_epoch_go()) {
    newest_started_ = command.epoch_go().epoch();
    world_->checker.Starts(newest_started_);
  }
  if (command.has_epoch_change()) world_->checker.Announces(command.epoch_change().epoch());
  const bool to_all = action.host == cli::kAllHosts;
  if (command.has_epoch_abort() && !to_all && world_->mutant == Mutant::kAbortUntold) return;
  Plant(&command);
  if (command.has_spawn_slots()) {
    world_->checker.Spawns(action.host, command.spawn_slots());
    world_->counts.Count("member started", command.spawn_slots().seats_size());
    world_->Progress();
    for (const v1::Seat& seat : command.spawn_slots().seats()) {
      member_at_[action.host][static_cast<int>(seat.slot())] = seat.member();
    }
  }
  if (command.has_retire_slot()) NoteRetired(action.host, command.retire_slot());
  if (command.has_stop() && !to_all) let_go_.insert(action.host);
  if (command.has_stop() && to_all && !std::exchange(ends_, true)) held_at_end_ = Held();
  for (const int host : greeted_) {
    if (to_all || host == action.host) SendTo(host, command);
  }
}

// A rank is ended for being late only where something holds it up.
void Driver::NoteRetired(int host, const v1::RetireSlot& retire) {
  const uint64_t member = member_at_[host][static_cast<int>(retire.slot())];
  retired_.emplace(member, world_->scheduler.now());
  world_->checker.Retires(member);
  if (retire.removed() || broken_.count(member) != 0 || world_->scenario.HoldsUp()) return;
  world_->checker.Fail(Violation::kStuck,
                       absl::StrCat("member ", member, " is ended: ", retire.cause()));
}

void Driver::SendTo(int host, v1::Command command) {
  if (gone_.count(host) != 0) return;
  if (world_->tells) world_->Tell(absl::StrCat("to host ", host, ": ", command.ShortDebugString()));
  world_->hosts[host]->Receive(std::move(command));
}

void Driver::NoteProposal(const v1::EpochPropose& propose) {
  if (hosts_of_.count(propose.epoch()) != 0) return;
  world_->counts.Count("epoch proposed");
  world_->wire.Forget(propose.epoch() > 2 ? propose.epoch() - 2 : 0);
  std::vector<int>& hosts = hosts_of_[propose.epoch()];
  for (const v1::EpochHost& host : propose.hosts()) hosts.push_back(static_cast<int>(host.host()));
  world_->checker.Proposes(propose, Held());
}

// Returns what hosts hold where somebody could read it.
std::vector<HeldCommit> Driver::Held() const {
  std::vector<HeldCommit> held;
  for (const auto& host : world_->hosts) {
    if (!host->lives() || host->lost || gone_.count(host->number()) != 0) continue;
    if (KeepsMembers(host->number())) held.push_back({host->number(), host->NewestCommit()});
  }
  return held;
}

// A member lives there, or is on its way, as far as hvdrun knows, and was not let go before now.
bool Driver::KeepsMembers(int host) const {
  const auto found = member_at_.find(host);
  if (found == member_at_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [this](const auto& entry) {
    const auto retired = retired_.find(entry.second);
    const bool before = retired != retired_.end() && retired->second < world_->scheduler.now();
    return dead_.count(entry.second) == 0 && (!before || broken_.count(entry.second) != 0);
  });
}

// ---- mutants ----

void Driver::Plant(v1::Command* command) {
  if (world_->mutant == Mutant::kMostCommit && command->has_epoch_propose()) {
    v1::EpochPropose& propose = *command->mutable_epoch_propose();
    uint64_t most = propose.resume_commit();
    for (const v1::EpochHost& host : propose.hosts()) {
      if (most == 0 || host.void_state()) continue;
      most = std::max(most, world_->hosts[host.host()]->NewestCommit());
    }
    propose.set_resume_commit(most);
  }
  if (world_->mutant == Mutant::kMemberAgain && command->has_spawn_slots() && !dead_.empty()) {
    command->mutable_spawn_slots()->mutable_seats(0)->set_member(*dead_.begin());
  }
}

// Returns whether the event would end an epoch that has not started.
bool Driver::Hides(const v1::Event& event) {
  if (event.has_rank_exited()) return hidden_.count(event.rank_exited().member()) != 0;
  if (!event.has_member_died() || hosts_of_.empty()) return false;
  const uint64_t newest = hosts_of_.rbegin()->first;
  const bool hides = newest > newest_started_ && event.member_died().epoch() == newest;
  if (hides) hidden_.insert(event.member_died().member());
  return hides;
}

}  // namespace hvd::elastic_simulator
