// SPDX-License-Identifier: Apache-2.0
// Link B of an elastic job against a real hvdd: epochs that break, what is kept of commits, members
// that come and go. The test is the driver, and speaks for workers that only sleep.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <map>

#include "proto/page/state_box.h"
#include "tests/daemon/process/link_b_fixture.h"

namespace hvd::daemon {
namespace {

using Kind = v1::Event;

// Where a member sits.
struct Place {
  uint64_t member;
  uint32_t slot;
  uint32_t share;
};

class ElasticJob {
 public:
  ElasticJob() {
    v1::Command command;
    *command.mutable_prepare_host() =
        hvdd.MakeLaunch(2, {"sh", "-c", "echo $HVD_LINK; exec sleep 1000"}).prepare;
    command.mutable_prepare_host()->set_elastic(true);
    command.mutable_prepare_host()->set_grace_s(0.2);
    hvdd.Send(command);
  }

  // The member is started, and its link is this test's.
  void Start(const Place& place) {
    v1::Command command;
    Set(place, command.mutable_spawn_slots()->add_seats());
    *command.mutable_spawn_slots()->mutable_expected() = Proposal(1, {place});
    hvdd.Send(command);
    LinkName link;
    const int index = static_cast<int>(place.member) - 1;
    REQUIRE(Eventually(10, [&] {
      const std::string text = hvdd.Output(index);
      return !text.empty() && ParseLinkName(text.substr(0, text.size() - 1), &link);
    }));
    Worker worker = ConnectBack(hvdd, link);
    worker.Claim(link.token);
    const v1::Welcome welcome = worker.Receive().welcome();
    CHECK(welcome.member() == place.member);
    CHECK(welcome.elastic());
    CHECK(welcome.share() == place.share);
    workers.emplace(place.member, std::move(worker));
  }

  Worker& of(uint64_t member) { return workers.at(member); }

  // It asks, and hvdd says that it stands.
  void Stand(uint64_t member) {
    const int before = hvdd.Count(Kind::kMemberStands);
    of(member).fds.clear();
    of(member).Join();
    const auto stands = hvdd.Await(Kind::kMemberStands, before + 1);
    REQUIRE(stands.has_value());
    CHECK(stands->member_stands().member() == member);
  }

  static v1::EpochPropose Proposal(uint64_t epoch, const std::vector<Place>& places) {
    v1::EpochPropose propose;
    propose.set_epoch(epoch);
    propose.add_hosts()->set_name("host1");
    for (const Place& place : places) Set(place, propose.mutable_hosts(0)->add_members());
    return propose;
  }

  // Takes the proposed members, which stand, through to the running epoch.
  void Run(const v1::EpochPropose& propose) {
    const uint64_t epoch = propose.epoch();
    const int addressed = hvdd.Count(Kind::kHostAddresses), ready = hvdd.Count(Kind::kHostReady);
    hvdd.Propose(propose);
    for (const v1::Seat& seat : propose.hosts(0).members()) {
      starts[seat.member()] = of(seat.member()).Receive().epoch_start();
      REQUIRE(starts[seat.member()].epoch() == epoch);
      of(seat.member()).Address(epoch, "address");
    }
    REQUIRE(hvdd.Await(Kind::kHostAddresses, addressed + 1).has_value());
    v1::Command table;
    table.mutable_epoch_table()->set_epoch(epoch);
    hvdd.Send(table);
    for (const v1::Seat& seat : propose.hosts(0).members()) {
      REQUIRE(of(seat.member()).Receive().has_table());
      of(seat.member()).Ready(epoch);
    }
    REQUIRE(hvdd.Await(Kind::kHostReady, ready + 1).has_value());
    v1::Command go;
    go.mutable_epoch_go()->set_epoch(epoch);
    hvdd.Send(go);
    for (const v1::Seat& seat : propose.hosts(0).members()) {
      REQUIRE(of(seat.member()).Receive().has_go());
    }
  }

  int PidOf(uint64_t member) {
    for (int nth = 1;; ++nth) {
      const auto started = hvdd.Await(Kind::kRankStarted, nth);
      REQUIRE(started.has_value());
      const v1::RankStarted& told = started->rank_started();
      if (told.member() == member) return static_cast<int>(told.pid());
    }
  }
  v1::MemberDied Kill(uint64_t member) {
    const int before = hvdd.Count(Kind::kMemberDied);
    REQUIRE(kill(PidOf(member), SIGKILL) == 0);
    const auto died = hvdd.Await(Kind::kMemberDied, before + 1);
    REQUIRE(died.has_value());
    CHECK(died->member_died().member() == member);
    return died->member_died();
  }
  // Its link is closed first: what it has mapped, it still may write to.
  v1::MemberDied Lose(uint64_t member) {
    workers.erase(member);
    REQUIRE(hvdd.Await(Kind::kRankBroke).has_value());
    CHECK(hvdd.Count(Kind::kHostQuiet) == 0);
    return Kill(member);
  }
  v1::HostQuiet Quiet(int nth = 1) {
    const auto quiet = hvdd.Await(Kind::kHostQuiet, nth);
    REQUIRE(quiet.has_value());
    CHECK(hvdd.Count(Kind::kHostQuiet) == nth);
    return quiet->host_quiet();
  }

  Hvdd hvdd;
  std::map<uint64_t, Worker> workers;
  std::map<uint64_t, v1::EpochStart> starts;

 private:
  static void Set(const Place& place, v1::Seat* seat) {
    seat->set_member(place.member);
    seat->set_slot(place.slot);
    seat->set_share(place.share);
  }
};

const Place kFirst{1, 0, 0}, kSecond{2, 1, 1}, kThird{3, 9, 1};

// The files that came with an EpochStart, behind the memory: of an even and of an odd commit, of
// the host and of the share.
int HostFile(const Worker& worker, uint64_t commit) { return worker.fds[1 + commit % 2].get(); }
int ShareFile(const Worker& worker, uint64_t commit) { return worker.fds[3 + commit % 2].get(); }

ino_t InodeOf(int fd) {
  struct stat about {};
  fstat(fd, &about);
  return about.st_ino;
}

StateHead* MapHead(int fd) {
  REQUIRE(ftruncate(fd, kStateContentsAt) == 0);
  void* const head = mmap(nullptr, sizeof(StateHead), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  REQUIRE(head != MAP_FAILED);
  return static_cast<StateHead*>(head);
}

// As the ranks of an epoch of two, or of one, do it.
void Commit(const Worker& worker, uint64_t commit, uint32_t local_size) {
  StateHead* const head = MapHead(HostFile(worker, commit));
  for (uint32_t rank = 0; rank < local_size; ++rank) {
    BeginState(&head->cells[rank]);
    EndState(&head->cells[rank], {commit, 1, 7, local_size});
  }
  munmap(head, sizeof(StateHead));
}

uint64_t CommitIn(int fd) {
  StateHead* const head = MapHead(fd);
  const uint64_t number = CompleteState(*head).number;
  munmap(head, sizeof(StateHead));
  return number;
}

void StartTwo(ElasticJob* job) {
  for (const Place& place : {kFirst, kSecond}) {
    job->Start(place);
    job->Stand(place.member);
  }
}

void RunTwo(ElasticJob* job) {
  StartTwo(job);
  job->Run(ElasticJob::Proposal(1, {kFirst, kSecond}));
}

TEST_CASE("a member dies, the host is quiet, and its share's next one resumes with the survivor") {
  ElasticJob job;
  RunTwo(&job);
  for (const uint64_t commit : {1, 2}) Commit(job.of(1), commit, 2);
  const ino_t share_file = InodeOf(ShareFile(job.of(2), 1));
  const ino_t host_file = InodeOf(HostFile(job.of(1), 1));
  CHECK(InodeOf(HostFile(job.of(2), 1)) == host_file);
  CHECK(job.Lose(2).commit() == 2);
  CHECK(job.hvdd.Count(Kind::kHostQuiet) == 0);  // the survivor is in it
  job.of(1).Leave(1);
  const v1::HostQuiet quiet = job.Quiet();
  CHECK(quiet.epoch() == 1);
  CHECK(quiet.commit() == 2);
  CHECK(quiet.before() == 1);

  job.Stand(1);
  job.Start(kThird);
  job.Stand(3);
  v1::EpochPropose next = ElasticJob::Proposal(2, {kFirst, kThird});
  next.set_resume_commit(1);
  next.set_root(1);
  next.add_needy(1);
  next.set_rolls_back(true);
  next.set_survivors(1);
  job.Run(next);
  for (const uint64_t member : {1, 3}) {
    const v1::EpochStart& start = job.starts[member];
    CHECK(start.rank() == (member == 1 ? 0 : 1));
    CHECK(start.resume_commit() == 1);
    CHECK(start.root() == 1);
    CHECK(start.needy_size() == 1);
    CHECK(start.rolls_back());
    CHECK(start.survivors() == 1);
    REQUIRE(start.state_files() == 4);
    REQUIRE(job.of(member).fds.size() == 5);
    CHECK(InodeOf(HostFile(job.of(member), 1)) == host_file);
    CHECK(CommitIn(HostFile(job.of(member), 1)) == 1);
    CHECK(CommitIn(HostFile(job.of(member), 2)) == 0);  // beyond what it resumes from
  }
  CHECK(InodeOf(ShareFile(job.of(3), 1)) == share_file);
  CHECK(InodeOf(ShareFile(job.of(1), 1)) != share_file);
}

TEST_CASE("what a host keeps is forgotten where the driver says so") {
  ElasticJob job;
  RunTwo(&job);
  Commit(job.of(1), 4, 2);
  for (const uint64_t member : {1, 2}) job.of(member).Leave(1);
  CHECK(job.Quiet().commit() == 4);
  for (const uint64_t member : {1, 2}) job.Stand(member);
  v1::EpochPropose next = ElasticJob::Proposal(2, {kFirst, kSecond});
  next.set_resume_commit(4);
  next.mutable_hosts(0)->set_void_state(true);
  job.Run(next);
  CHECK(CommitIn(HostFile(job.of(1), 4)) == 0);
  for (const uint64_t member : {1, 2}) job.of(member).Leave(2);
  CHECK(job.Quiet(2).commit() == 0);
}

TEST_CASE("half a commit, and a file that is too short, are none") {
  ElasticJob job;
  RunTwo(&job);
  StateHead* const head = MapHead(HostFile(job.of(1), 3));
  EndState(&head->cells[0], {3, 1, 7, 2});
  munmap(head, sizeof(StateHead));
  REQUIRE(ftruncate(HostFile(job.of(1), 2), 10) == 0);
  CHECK(job.Lose(2).commit() == 0);
  job.of(1).Leave(1);
  CHECK(job.Quiet().commit() == 0);
}

TEST_CASE("nobody can take from a state file what others have mapped") {
  ElasticJob job;
  RunTwo(&job);
  for (size_t i = 1; i < job.of(1).fds.size(); ++i) {
    const int file = job.of(1).fds[i].get();
    REQUIRE(ftruncate(file, 8192) == 0);
    CHECK(ftruncate(file, 0) != 0);
    CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE) != 0);
  }
}

TEST_CASE("a proposal that lists a member which has just died begins nothing") {
  ElasticJob job;
  StartTwo(&job);
  job.workers.erase(2);
  job.Kill(2);
  job.hvdd.Propose(ElasticJob::Proposal(1, {kFirst, kSecond}));
  const v1::ToWorker refused = job.of(1).Receive();
  REQUIRE(refused.has_refused());
  CHECK_FALSE(refused.refused().removed());
  CHECK(job.Quiet().epoch() == 1);
  job.Stand(1);
  job.Run(ElasticJob::Proposal(2, {kFirst}));
  job.of(1).Leave(2);
  CHECK(job.Quiet(2).epoch() == 2);
}

TEST_CASE("a second death while they meet ends that epoch, too, and the others stand again") {
  ElasticJob job;
  StartTwo(&job);
  job.hvdd.Propose(ElasticJob::Proposal(1, {kFirst, kSecond}));
  for (const uint64_t member : {1, 2}) REQUIRE(job.of(member).Receive().has_epoch_start());
  job.Lose(2);
  CHECK(job.of(1).Receive().refused().epoch() == 1);
  job.Stand(1);
  CHECK(job.Quiet().epoch() == 1);
  job.Run(ElasticJob::Proposal(2, {kFirst}));
}

TEST_CASE("members that are to change hear of it in the page, however early the word comes") {
  ElasticJob job;
  job.Start(kFirst);
  const bool early = GENERATE(true, false);
  if (!early) job.Stand(1);
  job.hvdd.Propose(ElasticJob::Proposal(1, {kFirst}));
  if (!early) REQUIRE(job.of(1).Receive().has_epoch_start());
  v1::Command change;
  change.mutable_epoch_change()->set_epoch(1);
  change.mutable_epoch_change()->set_text("host2 has joined");
  job.hvdd.Send(change);
  if (early) {
    v1::Command ask;
    ask.mutable_ask_pending();
    job.hvdd.Send(ask);
    REQUIRE(job.hvdd.Await(Kind::kHostPending).has_value());  // so the word is through
    job.of(1).Join();
    REQUIRE(job.of(1).Receive().has_epoch_start());
  }
  HostPage* const page = job.of(1).Map();
  REQUIRE(page != nullptr);
  CHECK(Eventually(10, [page] { return page->change.load() != 0; }));
  CHECK(page->aborted.load() == 0);
  munmap(page, kPageBytes);
}

TEST_CASE("a member that is removed is told so, now or when it asks, and ended when it stays") {
  ElasticJob job;
  RunTwo(&job);
  const bool stands = GENERATE(true, false);
  for (const uint64_t member : {1, 2}) job.of(member).Leave(1);
  if (stands) job.Stand(2);
  v1::Command retire;
  retire.mutable_retire_slot()->set_slot(kSecond.slot);
  retire.mutable_retire_slot()->set_cause("host1 has one slot now");
  retire.mutable_retire_slot()->set_removed(true);
  job.hvdd.Send(retire);
  if (!stands) job.of(2).Join();
  const v1::ToWorker refused = job.of(2).Receive();
  CHECK(refused.refused().removed());
  CHECK(refused.refused().message() == "host1 has one slot now");
  job.workers.erase(2);
  const auto exited = job.hvdd.AwaitExit(1);
  REQUIRE(exited.has_value());
  CHECK(exited->signal() == SIGTERM);  // the sleeper does not end by itself
  job.Stand(1);
  job.Run(ElasticJob::Proposal(2, {kFirst}));
}

TEST_CASE("what a slot's next member counts is its own") {
  ElasticJob job;
  RunTwo(&job);
  HostPage* const page = job.of(1).Map();
  REQUIRE(page != nullptr);
  WatchOf(page, 1).metrics[0].wait_ns = 4711;
  job.Lose(2);
  const auto first = job.hvdd.AwaitExit(1);
  REQUIRE(first.has_value());
  CHECK(first->counts().wait_ns() == 4711);
  // The survivor is still in the epoch, whose memory is there.
  const Place next{4, kSecond.slot, kSecond.share};
  job.Start(next);
  job.of(1).Leave(1);
  job.Quiet();
  job.workers.erase(4);
  job.Kill(4);
  const auto second = job.hvdd.AwaitExit(3);
  REQUIRE(second.has_value());
  CHECK(second->counts().wait_ns() == 0);
  CHECK_FALSE(second->joined());
  munmap(page, kPageBytes);
}

}  // namespace
}  // namespace hvd::daemon
