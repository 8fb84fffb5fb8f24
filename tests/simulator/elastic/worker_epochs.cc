// SPDX-License-Identifier: Apache-2.0
// Worker's part for epochs: what Process::JoinNext and Session do, in their order.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/simulator/elastic/world.h"

namespace hvd::elastic_simulator {
namespace {

constexpr double kConnectsS = 2e-3;  // until the ranks have connected, at most
constexpr double kDialsS = 0.5;      // for so long a peer that does not answer is called

}  // namespace

void Worker::Send(v1::ToDaemon message) {
  if (!link_broken) outbox.push_back(std::move(message));
}

// An epoch that is over before it has begun is followed by another.
Course<Worker::Code> Worker::Init() {
  Code code = Code::kAborted;
  while (code == Code::kAborted) {
    code = co_await TryInit();
    if (code != Code::kAborted) break;
    co_await At(Place::kLeaves);
    LeaveUnbegun();
    co_await At(Place::kLeft);
  }
  if (code == Code::kOk) is_new_ = false;
  co_return code;
}

Course<Worker::Code> Worker::TryInit() {
  const auto code_of = [](Got got) {
    if (got == Got::kRemoved) return Code::kRemoved;
    return got == Got::kOver ? Code::kOver : Code::kAborted;
  };
  v1::ToDaemon join;
  join.mutable_join();
  world_->checker.Joins(seat_.member);
  Send(std::move(join));
  co_await At(Place::kJoins);
  Got got = co_await Await(v1::ToWorker::kEpochStart);
  if (got != Got::kWanted) co_return code_of(got);
  co_await At(Place::kStarts);
  v1::ToDaemon address;
  address.mutable_address()->set_epoch(epoch_->start.epoch());
  address.mutable_address()->set_address(absl::StrCat("m", seat_.member));
  address.mutable_address()->set_memory_bytes(HostPageBytes(epoch_->local_size));
  Send(std::move(address));
  co_await At(Place::kAddressed);
  got = co_await Await(v1::ToWorker::kTable);
  if (got != Got::kWanted) co_return code_of(got);
  co_await At(Place::kConnects);
  co_await Sleep(world_->scheduler.random().Seconds(0, kConnectsS));
  v1::ToDaemon ready;
  ready.mutable_ready()->set_epoch(epoch_->start.epoch());
  Send(std::move(ready));
  co_await At(Place::kReady);
  got = co_await Await(v1::ToWorker::kGo);
  if (got != Got::kWanted) co_return code_of(got);
  world_->checker.Begins(PartNow());
  co_await At(Place::kBegins);
  if (const bool met = co_await Meet(); !met) co_return Code::kAborted;
  book_.GoOnFrom(epoch_->start.resume_commit());
  co_return Code::kOk;
}

// As HierarchicalCollectives::MeetPeers. False: the epoch is over.
Course<bool> Worker::Meet() {
  if (CutOff() >= 0) {
    co_await Sleep(kDialsS);
    epoch_->runs = true;
    NoticeCut();
    if (Aborted()) co_return false;
  }
  epoch_->runs = true;
  co_return true;
}

// The first rank of a host that nothing passes to from here; -1: there is none.
int Worker::CutOff() const {
  const double now = world_->scheduler.now();
  for (size_t place = 0; place < epoch_->hosts.size(); ++place) {
    const std::string& other = world_->hosts[epoch_->hosts[place]]->name();
    if (!world_->trouble.IsCut(host_->name(), other, now)) continue;
    return epoch_->topology.rank_at(static_cast<int>(place), 0);
  }
  return -1;
}

void Worker::NoticeCut() {
  if (epoch_ == nullptr || !epoch_->runs || Aborted()) return;
  const int rank = CutOff();
  if (rank < 0) return;
  const int far = epoch_->hosts[epoch_->topology.place(rank).host];
  world_->checker.CutEnds(epoch_->start.epoch(), host_->name(), world_->hosts[far]->name());
  EndEpoch({"cannot connect", -1, rank});
}

void Worker::EndEpoch(const AbortCause& cause) { AbortEpoch(epoch_->page, cause, nullptr); }

// While it waits for an epoch's start, it looks at the abort word, too.
Course<Worker::Got> Worker::Await(v1::ToWorker::KindCase wanted) {
  const bool looks = wanted != v1::ToWorker::kEpochStart;
  for (;;) {
    co_await Until(
        [this, looks] { return !inbox_.empty() || link_broken || (looks && Aborted()); });
    const bool broken = looks && Aborted();
    if (broken && (inbox_.empty() || world_->scheduler.random().OneIn(2))) {
      over_ = epoch_->start.epoch();
      co_return Got::kBroken;
    }
    if (inbox_.empty()) co_return Got::kOver;
    FromDaemon next = std::move(inbox_.front());
    inbox_.pop_front();
    if (Stale(next.message)) continue;
    if (next.message.kind_case() == v1::ToWorker::kRefused) {
      co_return TakeRefusal(next.message.refused());
    }
    if (next.message.kind_case() != wanted) {
      world_->checker.Fail(Violation::kWords, "hvdd sends something else than was asked for");
      co_return Got::kOver;
    }
    if (wanted == v1::ToWorker::kEpochStart) TakeStart(std::move(next));
    co_return Got::kWanted;
  }
}

bool Worker::Stale(const v1::ToWorker& message) const {
  uint64_t epoch = 0;
  if (message.has_refused()) epoch = message.refused().epoch();
  if (message.has_table()) epoch = message.table().epoch();
  if (message.has_go()) epoch = message.go().epoch();
  return epoch != 0 && epoch <= over_;
}

Worker::Got Worker::TakeRefusal(const v1::Refused& refused) {
  over_ = std::max(over_, refused.epoch());
  if (refused.removed()) return Got::kRemoved;
  return refused.epoch() != 0 ? Got::kAgain : Got::kOver;
}

void Worker::TakeStart(FromDaemon start) {
  epoch_ = std::make_unique<Epoch>();
  epoch_->start = start.message.epoch_start();
  const v1::EpochStart& told = epoch_->start;
  begun_ = told.epoch();
  std::vector<HostShape> shapes;
  for (const v1::WorldHost& host : told.hosts()) {
    shapes.push_back({host.name(), static_cast<int>(host.ranks())});
  }
  epoch_->topology = Topology(std::move(shapes));
  epoch_->rank = static_cast<int>(told.rank());
  const RankPlace& place = epoch_->topology.place(epoch_->rank);
  epoch_->local_rank = place.local_rank;
  epoch_->local_size = place.local_size;
  epoch_->needs_state =
      std::find(told.needy().begin(), told.needy().end(), told.rank()) != told.needy().end();
  epoch_->hosts = world_->driver->HostsOf(told.epoch());
  epoch_->page_memory = Mapping(start.raw.fds[0], sizeof(HostPage), false);
  epoch_->page = static_cast<HostPage*>(epoch_->page_memory.at());
  const size_t files = start.raw.fds.size() - told.state_files();
  for (size_t turn = 0; turn < epoch_->files.size(); ++turn) {
    epoch_->files[turn] =
        Mapping(start.raw.fds[files + turn], rt::kStateItemsAt + sizeof(ModelBytes), true);
  }
  epoch_->stale_change = was_changed_;
  world_->checker.Told(PartNow(), Describe());
}

// Returns what all members of an epoch must have been told alike.
std::string Worker::Describe() const {
  const v1::EpochStart& told = epoch_->start;
  std::vector<std::string> hosts;
  for (const v1::WorldHost& host : told.hosts()) {
    hosts.push_back(absl::StrCat(host.name(), ":", host.ranks()));
  }
  return absl::StrCat(absl::StrJoin(hosts, ","), " resumes ", told.resume_commit(), " root ",
                      told.root(), " needy ", absl::StrJoin(told.needy(), ","),
                      told.rolls_back() ? " back" : "", " survivors ", told.survivors());
}

void Worker::LeaveUnbegun() {
  if (begun_ != 0) Leave();
}

// Whatever this process could write into is unmapped before it says so.
void Worker::Leave() {
  const uint64_t epoch = begun_;
  over_ = epoch;
  begun_ = 0;
  epoch_.reset();
  v1::ToDaemon leave;
  leave.mutable_leave()->set_epoch(epoch);
  Send(std::move(leave));
}

}  // namespace hvd::elastic_simulator
