// SPDX-License-Identifier: Apache-2.0
// Link B against a real hvdd: how epochs end, and how the next one is had.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "tests/daemon/process/link_b_fixture.h"

namespace hvd::daemon {
namespace {

using Kind = v1::Event;

TEST_CASE("different sizes of memory end the epoch with both ranks' names") {
  Job job(2);
  std::vector<Worker> workers;
  for (int rank : {0, 1}) {
    workers.push_back(job.ComeBack());
    workers[rank].Claim(job.links[rank].token);
    REQUIRE(workers[rank].Receive().has_welcome());
  }
  for (Worker& worker : workers) {
    worker.Join();
    REQUIRE(worker.Receive().has_epoch_start());
  }
  workers[0].Address(1, "zero", kMemory);
  REQUIRE(Eventually(2, [&] { return workers[0].Map()->taken.load() == kMemory; }));
  workers[1].Address(1, "one", 2 * kMemory);
  for (Worker& worker : workers) {
    CHECK(worker.Receive().refused().message().find("rank 1 asks for") != std::string::npos);
  }
}

TEST_CASE("a link that breaks inside an epoch aborts it and is told") {
  Job job(2);
  std::vector<Worker> workers = job.RunAll();
  HostPage* page = workers[0].Map();
  REQUIRE(page != nullptr);
  workers.pop_back();  // rank 1's link
  REQUIRE(Eventually(2, [&] { return page->aborted.load() != 0; }));
  CHECK(std::string(CauseOf(*page).text).find("rank 1 on host1 closed its link") == 0);
  const auto broke = job.hvdd.Await(Kind::kRankBroke);
  REQUIRE(broke.has_value());
  CHECK(broke->rank_broke().member() == 2);
  munmap(page, kPageBytes);
}

TEST_CASE("a rank that dies before it joins frees those who wait") {
  Job job(2);
  Worker worker = job.ComeBack();
  worker.Claim(job.links[0].token);
  REQUIRE(worker.Receive().has_welcome());
  worker.Join();
  REQUIRE(worker.Receive().has_epoch_start());
  HostPage* page = worker.Map();
  REQUIRE(page != nullptr);
  kill(job.pids[1], SIGKILL);
  const std::string cause = worker.Receive().refused().message();
  CHECK(cause == "rank 1 on host1 was killed by signal 9 (Killed) before hvd's init");
  CHECK(CauseOf(*page).text == cause);
  const auto exited = job.hvdd.AwaitExit(1);
  REQUIRE(exited.has_value());
  CHECK(exited->signal() == SIGKILL);
  CHECK(!exited->after_abort());
  munmap(page, kPageBytes);
}

TEST_CASE("a rank that is gone in the middle of an abort of its own frees those who wait") {
  Job job(2);
  std::vector<Worker> workers = job.RunAll();
  HostPage* page = workers[0].Map();
  REQUIRE(page != nullptr);
  page->abort_notes_taken = GENERATE(1u, kAbortNotes - 1);
  workers.pop_back();
  REQUIRE(Eventually(2, [&] { return page->aborted.load() != 0; }));
  CHECK(std::string(CauseOf(*page).text).find("rank 1 on host1 closed its link") == 0);
  munmap(page, kPageBytes);
}

TEST_CASE("a rank whose hvd_init fails says why, and frees those who have met it") {
  Job job(2);
  std::vector<Worker> workers;
  for (int rank = 0; rank < 2; ++rank) workers.push_back(job.ComeBack());
  const bool joined = GENERATE(false, true);
  if (joined) job.Run(&workers);
  if (!joined) {
    workers[1].Claim(job.links[1].token);
    REQUIRE(workers[1].Receive().has_welcome());
  }
  v1::ToDaemon message;
  message.mutable_init_failed()->set_message("HVD_X=1 cannot be");
  workers[1].Send(message);
  const auto failed = job.hvdd.Await(Kind::kRankInitFailed);
  REQUIRE(failed.has_value());
  CHECK(failed->rank_init_failed().member() == 2);
  CHECK(failed->rank_init_failed().message() == "HVD_X=1 cannot be");
  CHECK(failed->rank_init_failed().joined() == joined);
  if (!joined) return;
  HostPage* page = workers[0].Map();
  REQUIRE(page != nullptr);
  REQUIRE(Eventually(2, [&] { return page->aborted.load() != 0; }));
  CHECK(std::string(CauseOf(*page).text) ==
        "hvd_init of rank 1 on host1 failed: HVD_X=1 cannot be");
  munmap(page, kPageBytes);
}

TEST_CASE("whoever leaves an epoch that the ranks have aborted says why") {
  Job job(1);
  std::vector<Worker> workers = job.RunAll();
  HostPage* page = workers[0].Map();
  REQUIRE(page != nullptr);
  AbortEpoch(page, {"rank 3 has left the job", 3}, nullptr);
  workers[0].Leave(1);
  const auto left = job.hvdd.Await(Kind::kRankLeft);
  REQUIRE(left.has_value());
  CHECK(left->rank_left().aborted() == "rank 3 has left the job");
  REQUIRE(left->rank_left().has_abort_rank());
  CHECK(left->rank_left().abort_rank() == 3);
  munmap(page, kPageBytes);
}

TEST_CASE(
    "who ends after an abort that only the page tells of: all but the rank whose doing it is") {
  for (const auto& [cause, after] : {std::pair(AbortCause{"rank 0 has left", 3}, true),
                                     {AbortCause{"rank 0 is said to have left"}, true},
                                     {AbortCause{""}, true},
                                     {AbortCause{"rank 3 waits in vain", 0}, false},
                                     {AbortCause{"no memory", 0}, false}}) {
    CAPTURE(cause.text, cause.rank);
    Job job(1);
    std::vector<Worker> workers = job.RunAll();
    HostPage* page = workers[0].Map();
    REQUIRE(page != nullptr);
    AbortEpoch(page, cause, nullptr);
    kill(job.pids[0], SIGKILL);
    const auto exited = job.hvdd.AwaitExit(0);
    REQUIRE(exited.has_value());
    CHECK(exited->after_abort() == after);
    CHECK(exited->has_abort_rank() == (cause.rank >= 0));
    munmap(page, kPageBytes);
  }
}

TEST_CASE("whoever has left an aborted epoch ends after its abort, though its page is gone") {
  Job job(1);
  std::vector<Worker> workers = job.RunAll();
  HostPage* page = workers[0].Map();
  REQUIRE(page != nullptr);
  AbortEpoch(page, {"rank 3 has left the job", 3}, nullptr);
  workers[0].Leave(1);
  REQUIRE(job.hvdd.Await(Kind::kRankLeft).has_value());
  kill(job.pids[0], SIGKILL);
  const auto exited = job.hvdd.AwaitExit(0);
  REQUIRE(exited.has_value());
  CHECK(exited->left());
  CHECK(exited->after_abort());
  CHECK(exited->aborted() == "rank 3 has left the job");
  CHECK(exited->abort_rank() == 3);
  munmap(page, kPageBytes);
}

TEST_CASE("the driver's abort and stop reach the page with their cause") {
  Job job(1);
  std::vector<Worker> workers = job.RunAll();
  HostPage* page = workers[0].Map();
  REQUIRE(page != nullptr);
  snprintf(page->activity[0].last, sizeof(page->activity[0].last), "allreduce 'grad.3'");
  page->activity[0].calls = 12;
  page->activity[0].pending = 1;
  page->activity[0].callers = 1;
  page->activity[0].state = RankState::kWaiting;
  v1::Command abort;
  abort.mutable_epoch_abort()->set_cause("rank 7 on host9 exited with code 3");
  job.hvdd.Send(abort);
  REQUIRE(Eventually(2, [&] { return page->aborted.load() != 0; }));
  CHECK(std::string(CauseOf(*page).text) == "rank 7 on host9 exited with code 3");
  job.hvdd.Stop();
  const auto exited = job.hvdd.AwaitExit(0);
  REQUIRE(exited.has_value());
  CHECK(exited->after_abort());
  CHECK(exited->joined());
  CHECK(exited->activity() == "waiting in allreduce 'grad.3'; 12 collectives done");
  munmap(page, kPageBytes);
}

TEST_CASE("the abort of an epoch is no excuse for a rank that never joined one") {
  Job job(2);
  v1::Command abort;
  abort.mutable_epoch_abort()->set_cause("rank 7 on host9 exited (code 0) without hvd's init");
  job.hvdd.Send(abort);
  v1::Command ask;
  ask.mutable_ask_pending();
  job.hvdd.Send(ask);
  REQUIRE(job.hvdd.Await(Kind::kHostPending).has_value());  // so the abort is through, too
  kill(job.pids[0], SIGKILL);
  const auto first = job.hvdd.AwaitExit(0);
  REQUIRE(first.has_value());
  CHECK(!first->after_abort());
  job.hvdd.Stop();
  const auto second = job.hvdd.AwaitExit(1);
  REQUIRE(second.has_value());
  CHECK(second->after_abort());
}

TEST_CASE("a member that no epoch is proposed for waits, and gets the next with another rank") {
  Job job(2);
  std::vector<Worker> workers = job.RunAll();
  for (Worker& worker : workers) worker.Leave(1);
  workers[0].Join();
  const auto stands = job.hvdd.Await(Kind::kMemberStands);
  REQUIRE(stands.has_value());
  CHECK(stands->member_stands().member() == 1);
  CHECK(stands->member_stands().after_epoch() == 1);
  v1::EpochPropose next = job.first;
  next.set_epoch(2);
  next.mutable_hosts(0)->mutable_members()->SwapElements(0, 1);
  job.hvdd.Propose(next);
  const v1::ToWorker start = workers[0].Receive();
  REQUIRE(start.has_epoch_start());
  CHECK(start.epoch_start().epoch() == 2);
  CHECK(start.epoch_start().rank() == 1);
  workers[1].Join();
  CHECK(workers[1].Receive().epoch_start().rank() == 0);
}

TEST_CASE("whoever is refused an epoch may ask for the next over the same link") {
  Job job(2);
  job.ProposeEpoch(2);
  std::vector<Worker> workers;
  for (int rank : {0, 1}) {
    workers.push_back(job.ComeBack());
    workers[rank].Claim(job.links[rank].token);
    REQUIRE(workers[rank].Receive().has_welcome());
  }
  workers[0].Join();
  REQUIRE(workers[0].Receive().has_epoch_start());
  v1::Command abort;
  abort.mutable_epoch_abort()->set_epoch(1);
  abort.mutable_epoch_abort()->set_cause("rank 7 on host9 died");
  job.hvdd.Send(abort);
  CHECK(workers[0].Receive().refused().epoch() == 1);
  workers[1].Join();
  CHECK(workers[1].Receive().refused().message() == "rank 7 on host9 died");
  for (Worker& worker : workers) {
    worker.Join();
    CHECK(worker.Receive().epoch_start().epoch() == 2);
  }
}

TEST_CASE(
    "whoever has seen its epoch aborted in the page may ask for the next over the same link") {
  Job job(2);
  job.ProposeEpoch(2);
  std::vector<Worker> workers = job.RunAll();
  HostPage* page = workers[0].Map();
  REQUIRE(page != nullptr);
  AbortEpoch(page, "rank 1 cannot go on", nullptr);
  for (Worker& worker : workers) {
    worker.Join();
    CHECK(worker.Receive().epoch_start().epoch() == 2);
  }
  munmap(page, kPageBytes);
}

TEST_CASE("a retired slot: the others are told why, and only its worker ends") {
  Job job(2);
  std::vector<Worker> workers = job.RunAll();
  HostPage* page = workers[0].Map();
  REQUIRE(page != nullptr);
  v1::Command retire;
  retire.mutable_retire_slot()->set_slot(1);
  retire.mutable_retire_slot()->set_cause("rank 1 is not needed any more");
  job.hvdd.Send(retire);
  const auto exited = job.hvdd.AwaitExit(1);
  REQUIRE(exited.has_value());
  CHECK(exited->signal() == SIGTERM);
  CHECK(exited->after_abort());
  CHECK(std::string(CauseOf(*page).text) == "rank 1 is not needed any more");
  CHECK(kill(job.pids[0], 0) == 0);
  CHECK(job.hvdd.Count(Kind::kRankExited) == 1);
  munmap(page, kPageBytes);
}

}  // namespace
}  // namespace hvd::daemon
