// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/elastic/worker.h"

#include <csignal>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/simulator/elastic/world.h"

namespace hvd::elastic_simulator {
namespace {

constexpr int kOverCode = 1;   // hvd_init was refused for good
constexpr int kErrorCode = 4;  // a commit or a sync failed
constexpr int kStartCode = 5;  // the program fails between init and sync

}  // namespace

Worker::Worker(World* world, Host* host, const Seat& seat)
    : world_(world), host_(host), seat_(seat) {
  // The model that a process starts with is nobody else's, so a state that was not brought is seen.
  model_.lineage = Mix(seat.member, world->scenario.seed);
}

Worker::~Worker() { world_->scheduler.Remove(this); }

void Worker::Start(double after) {
  if (world_->scheduler.random().OneIn(4)) laziness = world_->scheduler.random().Below(8);
  world_->scheduler.Add(this);
  course_.emplace(Run());
  resume_ = course_->handle();
  started_ = true;
  world_->scheduler.Pause(this, world_->scheduler.now() + after);
}

void Worker::Die(int status) {
  if (!lives_) return;
  lives_ = false;
  if (status == 0) world_->checker.EndsWithZero(seat_.member);
  ready_ = nullptr;
  world_->Tell(absl::StrCat("member ", seat_.member, " on host ", host_->number(), " ends with ",
                            status, " at ", NameOf(place_)));
  if (begun_ != 0) world_->checker.Broke(begun_);
  course_.reset();
  epoch_.reset();
  world_->scheduler.Remove(this);
  host_->Ended(this, status);
}

void Worker::LeaveAndDie(int status) {
  if (begun_ != 0) {
    world_->checker.Broke(begun_);
    world_->left_early.emplace(begun_, epoch_->rank);
    Leave();
  }
  Die(status);
}

// Its handler may have a last word; nothing keeps it from going on meanwhile.
void Worker::Term() {
  paused_until = 0;
  Random& random = world_->scheduler.random();
  const double soon = random.Seconds(0, random.OneIn(3) ? world_->scenario.grace_s : 5e-3);
  world_->scheduler.After(soon, [this] { Die(SIGTERM); });
}

bool Worker::Ready() const { return resume_ && (!ready_ || ready_()); }

void Worker::Step() {
  if (const Fault* const fault = world_->faults.Strikes(place_); fault != nullptr) {
    return world_->faults.StrikeWorker(*fault, this);
  }
  const std::coroutine_handle<> next = std::exchange(resume_, nullptr);
  ready_ = nullptr;
  next.resume();
  if (course_->done()) Die(course_->value() << 8);
}

Worker::Pause Worker::At(Place place) {
  place_ = place;
  return {this};
}

Worker::Pause Worker::Until(std::function<bool()> ready) {
  ready_ = std::move(ready);
  return {this};
}

Worker::Pause Worker::Sleep(double seconds) {
  world_->scheduler.Pause(this, world_->scheduler.now() + seconds);
  return {this};
}

Part Worker::PartNow() const {
  return {seat_.member, epoch_->start.epoch(), host_->number(), host_->lost};
}

// ---- the program: what a user's loop is ----

Course<int> Worker::Run() {
  co_await At(Place::kStarted);
  if (!world_->scenario.inits) co_return 0;
  Code code = co_await Init();
  for (;;) {
    const bool fails = world_->trouble.IsBad(host_->name(), world_->scheduler.now());
    if (code == Code::kOk && fails) co_return FailStart();
    if (code == Code::kOk) code = co_await Sync();
    if (code == Code::kOk) code = co_await Train();
    if (code == Code::kOk) {
      Leave();
      co_await At(Place::kDone);
      world_->checker.EndsWell(model_);
      world_->counts.Count("clean end");
      co_return 0;
    }
    if (code == Code::kRemoved) world_->counts.Count("removed");
    if (code == Code::kRemoved) co_return 0;
    if (code == Code::kOver) co_return kOverCode;
    if (code == Code::kDiffers) co_return kErrorCode;
    if (code == Code::kBug) co_return world_->scenario.bug_code;
    co_await At(Place::kLeaves);
    Leave();
    co_await At(Place::kLeft);
    code = co_await Init();
  }
}

// Returns kBug where the program fails by itself.
Worker::Code Worker::CodeOfStep() const {
  const Scenario& scenario = world_->scenario;
  const bool mine = !scenario.bug_is_one || (seat_.share == 0 && host_->name() == "h0");
  return mine && static_cast<int>(model_.steps) == scenario.bug_at ? Code::kBug : Code::kOk;
}

// The place where it begins is committed once more.
Course<Worker::Code> Worker::CommitAnew() {
  if (!world_->scenario.commits_anew || model_.steps == 0) co_return Code::kOk;
  co_return co_await Commit(rt::CommitBy::kProgram, false);
}

// It leaves in good order; those who wait for it hear whose doing it is.
int Worker::FailStart() {
  world_->checker.FailsStart(PartNow(), host_->name());
  const std::string text = absl::StrCat("rank ", epoch_->rank, " has left the job");
  if (!Aborted()) EndEpoch({text.c_str(), epoch_->rank});
  Leave();
  return kStartCode;
}

Course<Worker::Code> Worker::Train() {
  const Scenario& scenario = world_->scenario;
  const Code begun = co_await CommitAnew();
  const bool is_done = static_cast<int>(model_.steps) >= scenario.steps;
  if (begun != Code::kOk && !(is_done && begun == Code::kUpdated)) co_return begun;
  while (static_cast<int>(model_.steps) < scenario.steps) {
    co_await At(Place::kComputes);
    co_await Sleep(world_->scheduler.random().Seconds(0, scenario.compute_s));
    Collective sum;
    sum.name = "gradient";
    // Steps that are done again come to another end: no program repeats itself to the bit.
    const uint64_t draw = Mix(epoch_->start.epoch(), epoch_->rank);
    sum.words = {static_cast<int64_t>(Mix(model_.lineage, draw) >> 8)};
    place_ = Place::kReduces;
    const std::optional<Gifts> all = co_await Together(std::move(sum));
    if (!all.has_value()) co_return Code::kAborted;
    uint64_t total = 0;
    for (const auto& [rank, given] : *all) total += static_cast<uint64_t>(given.words[0]);
    model_.Step(total);
    if (const Code failed = CodeOfStep(); failed != Code::kOk) co_return failed;
    const bool last = static_cast<int>(model_.steps) == scenario.steps;
    const bool commits = last || model_.steps % scenario.commit_every == 0;
    Code code = Code::kOk;
    if (commits) code = co_await Commit(rt::CommitBy::kProgram, false);
    if (!commits && scenario.checks) {
      code = co_await Agree(rt::CommitBy::kProgram, rt::AgreementSide(), 0);
    }
    if (last && code == Code::kUpdated) code = Code::kOk;
    if (code != Code::kOk) co_return code;
  }
  co_return Code::kOk;
}

// ---- collectives ----

bool Worker::SomeoneHasLeft() const { return world_->left_early.count(epoch_->start.epoch()) != 0; }

// As ranks do that wait for one which has left.
void Worker::AbortForLeaver() {
  EndEpoch({"a rank has left the job while others wait for it",
            world_->left_early.at(epoch_->start.epoch())});
}

// All ranks of the set are seen by this host, or the epoch is broken: in whichever order this rank
// happens to look.
Course<std::optional<Gifts>> Worker::Together(Collective what) {
  const bool whole = what.ranks.empty();
  if (whole) {
    what.ranks.resize(epoch_->topology.size());
    std::iota(what.ranks.begin(), what.ranks.end(), 0);
  }
  const CollectiveKey key = {epoch_->start.epoch(), what.set,
                             whole ? epoch_->collectives++ : epoch_->brought++};
  if (Aborted()) co_return std::nullopt;
  world_->checker.Writes(PartNow());
  world_->wire.Give({key, host_->number(), epoch_->rank, {what.name, what.words}}, epoch_->hosts);
  co_await At(place_);
  const auto complete = [this, &key, &what] {
    return world_->wire.At(host_->number(), key).size() >= what.ranks.size();
  };
  co_await Until([this, &complete] { return Aborted() || complete() || SomeoneHasLeft(); });
  if (SomeoneHasLeft() && !complete() && !Aborted()) AbortForLeaver();
  const bool ends = Aborted() && (!complete() || world_->scheduler.random().OneIn(2));
  if (ends) co_return std::nullopt;
  world_->checker.Completes(PartNow());
  const Gifts all = world_->wire.At(host_->number(), key);
  for (const auto& [rank, given] : all) {
    if (given.name == what.name) continue;
    world_->checker.Fail(Violation::kContent,
                         absl::StrCat("ranks of epoch ", key.epoch, " call '", given.name,
                                      "' and '", what.name, "' at once"));
  }
  co_return all;
}

}  // namespace hvd::elastic_simulator
