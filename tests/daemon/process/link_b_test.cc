// SPDX-License-Identifier: Apache-2.0
// Link B against a real hvdd: who may speak for a rank, and what is sent.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "tests/daemon/process/link_b_fixture.h"

namespace hvd::daemon {
namespace {

using Kind = v1::Event;

TEST_CASE("an epoch of two ranks, one by the door and one by the way back") {
  Job job(2, {}, 2);
  std::vector<Worker> workers;
  workers.push_back(job.Enter(0));
  workers.push_back(job.ComeBack());
  REQUIRE(workers[1].connected());

  workers[0].Claim(job.links[0].token);
  const v1::ToWorker welcome = workers[0].Receive();
  REQUIRE(welcome.has_welcome());
  CHECK(welcome.welcome().member() == 1);
  CHECK(welcome.welcome().job() == job.hvdd.job());
  workers[1].Claim(job.links[1].token);
  CHECK(workers[1].Receive().welcome().member() == 2);

  std::vector<HostPage*> pages;
  std::string token;
  for (Worker& worker : workers) {
    worker.Join();
    const v1::ToWorker start = worker.Receive();
    REQUIRE(start.has_epoch_start());
    CHECK(start.epoch_start().epoch() == 1);
    CHECK(start.epoch_start().rank() == pages.size());
    CHECK(start.epoch_start().hosts_size() == 2);
    CHECK(start.epoch_start().hosts(0).ranks() == 2);
    CHECK(start.epoch_start().token().size() == 32);
    CHECK(worker.fds.size() == 3);  // memory, and a bell a rank as there are two hosts
    pages.push_back(worker.Map());
    REQUIRE(pages.back() != nullptr);
  }
  CHECK(pages[0]->magic == kHostPageMagic);
  CHECK(pages[0]->local_size == 2);
  CHECK(pages[0]->bytes == kHostFileBytes);
  CHECK(pages[0]->epoch == 1);
  pages[0]->bell.word = 42;
  CHECK(pages[1]->bell.word == 42);
  CHECK(ftruncate(workers[0].fds[0].get(), 0) != 0);  // sealed

  workers[1].Address(1, "one");
  workers[0].Address(1, "zero");
  const auto addresses = job.hvdd.Await(Kind::kHostAddresses);
  REQUIRE(addresses.has_value());
  CHECK(pages[0]->taken.load() == kMemory);
  REQUIRE(addresses->host_addresses().addresses_size() == 2);
  CHECK(addresses->host_addresses().addresses(0).address() == "zero");
  CHECK(addresses->host_addresses().addresses(1).address() == "one");

  v1::Command table;
  table.mutable_epoch_table()->set_epoch(1);
  for (int rank = 3; rank >= 0; --rank) {
    v1::RankAddress& entry = *table.mutable_epoch_table()->add_addresses();
    entry.set_rank(rank);
    entry.set_address("address " + std::to_string(rank));
  }
  job.hvdd.Send(table);
  for (Worker& worker : workers) {
    const v1::ToWorker message = worker.Receive();
    REQUIRE(message.table().addresses_size() == 4);
    CHECK(message.table().addresses(3) == "address 3");
    worker.Ready(1);
  }
  CHECK(job.hvdd.Await(Kind::kHostReady).has_value());
  v1::Command go;
  go.mutable_epoch_go()->set_epoch(1);
  job.hvdd.Send(go);
  for (Worker& worker : workers) CHECK(worker.Receive().has_go());
  for (Worker& worker : workers) worker.Leave(1);
  CHECK(job.hvdd.Await(Kind::kRankLeft, 2).has_value());
  CHECK(job.hvdd.Count(Kind::kRankBroke) == 0);
  for (HostPage* page : pages) munmap(page, kPageBytes);
}

TEST_CASE("claims that are refused, each with its reason") {
  Job job(2);
  Worker wrong = job.ComeBack();
  wrong.Claim(std::string(32, '0'));
  CHECK(wrong.Receive().refused().message().find("wrong token") != std::string::npos);
  Worker old = job.ComeBack();
  old.Claim(job.links[0].token, kLinkBProtocol + 1);
  CHECK(old.Receive().refused().message().find("protocol") != std::string::npos);
  Worker first = job.ComeBack();
  first.Claim(job.links[0].token);
  CHECK(first.Receive().has_welcome());
  Worker second = job.ComeBack();
  second.Claim(job.links[0].token);
  CHECK(second.Receive().refused().message().find("already taken by process") != std::string::npos);
}

TEST_CASE("after the first has closed its link the rank may be claimed again") {
  Job job(1);
  {
    Worker first = job.ComeBack();
    first.Claim(job.links[0].token);
    CHECK(first.Receive().has_welcome());
  }
  CHECK(Eventually(2, [&] {
    Worker next = job.ComeBack();
    next.Claim(job.links[0].token);
    return next.Receive().has_welcome();
  }));
}

TEST_CASE("garbage closes that connection only") {
  Job job(1);
  Worker good = job.ComeBack();
  good.Claim(job.links[0].token);
  REQUIRE(good.Receive().has_welcome());
  Worker bad = job.ComeBack();
  bad.SendBytes("GET / HTTP/1.1\r\n\r\n");
  CHECK(bad.Receive().kind_case() == v1::ToWorker::KIND_NOT_SET);
  Worker odd = job.ComeBack();
  odd.Join();  // before any claim
  CHECK(odd.Receive().kind_case() == v1::ToWorker::KIND_NOT_SET);
  good.Join();
  CHECK(good.Receive().has_epoch_start());
}

TEST_CASE("a worker that asks and asks and never reads is left") {
  Job job(1);
  Worker worker = job.ComeBack();
  worker.Claim(job.links[0].token);
  REQUIRE(worker.Receive().has_welcome());
  constexpr int kAsked = 4000;  // more than a socket holds answers
  v1::ToDaemon ready;
  ready.mutable_ready()->set_epoch(5);  // is none
  std::string flood;
  for (int i = 0; i < kAsked; ++i) flood += Frame(ready.SerializeAsString());
  worker.SendBytes(flood);
  REQUIRE(worker.AwaitLeft());
  int refused = 0;
  while (worker.Receive().has_refused()) ++refused;
  CHECK(refused > 0);
  CHECK(refused < kAsked);
  Worker next = job.ComeBack();
  next.Claim(job.links[0].token);
  CHECK(next.Receive().kind_case() != v1::ToWorker::KIND_NOT_SET);
}

TEST_CASE("a path is any bytes, not only UTF-8") {
  Job job(1);
  Worker worker = job.ComeBack();
  worker.Claim(job.links[0].token);
  REQUIRE(worker.Receive().has_welcome());
  v1::ToDaemon ask;
  ask.mutable_ask_timeline()->set_path("/tmp/\xe9t\xe9.json");
  worker.Send(ask);
  const auto asked = job.hvdd.Await(Kind::kTimelineAsked);
  REQUIRE(asked.has_value());
  CHECK(asked->timeline_asked().path() == "/tmp/\xe9t\xe9.json");
}

TEST_CASE("workers of an ordinary user reach the way back") {
  HvddOptions options;
  options.ordinary_user = geteuid() == 0;
  for (const std::string& level : WorkingLevels(options.ordinary_user)) {
    CAPTURE(level);
    options.containment = level;
    Hvdd hvdd(options);
    hvdd.Launch(1, {"python3", "-c",
                    "import os,socket\n"
                    "s=socket.socket(socket.AF_UNIX)\n"
                    "s.connect(os.environ['HVD_LINK'].split(':',3)[3])\n"
                    "print('reached')"});
    CHECK(hvdd.AwaitOutput(0) == "reached\n");
    CHECK(hvdd.AwaitOutput(0, true) == "");
  }
}

}  // namespace
}  // namespace hvd::daemon
