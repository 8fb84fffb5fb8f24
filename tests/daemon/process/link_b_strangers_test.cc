// SPDX-License-Identifier: Apache-2.0
// Link B against a real hvdd: whoever comes to it and is no rank.
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "store/store_words.h"
#include "tests/daemon/process/link_b_fixture.h"

namespace hvd::daemon {
namespace {

using Catch::Matchers::Contains;
using Kind = v1::Event;

TEST_CASE("strangers that hold many links keep no rank away") {
  rlimit files;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &files) == 0);
  constexpr rlim_t kLinks = 4200;
  const rlimit raised = {files.rlim_max, files.rlim_max};
  if (files.rlim_max < kLinks + 100 || setrlimit(RLIMIT_NOFILE, &raised) != 0) {
    WARN("SKIP: a process may have too few files here");
    return;
  }
  Job job(1);
  std::vector<Worker> strangers;
  while (strangers.size() < kLinks) {
    strangers.push_back(job.ComeBack());
    REQUIRE(strangers.back().connected());
  }
  Worker rank = job.ComeBack();
  rank.Claim(job.links[0].token);
  CHECK(rank.Receive().has_welcome());
  setrlimit(RLIMIT_NOFILE, &files);
}

TEST_CASE("strangers are told of once, and the job goes on") {
  Job job(1);
  for (int i = 0; i < 3; ++i) {
    Worker stranger = job.ComeBack();
    stranger.SendBytes("GET / HTTP/1.1\r\n\r\n");
    CHECK(stranger.Receive().kind_case() == v1::ToWorker::KIND_NOT_SET);
    Worker wrong = job.ComeBack();
    wrong.Claim(std::string(32, '0'));
    CHECK(wrong.Receive().has_refused());
  }
  const auto notice = job.hvdd.Await(Kind::kNotice);
  REQUIRE(notice.has_value());
  CHECK_THAT(notice->notice().text(),
             Contains("process " + std::to_string(getpid())) && Contains("no rank of this job"));
  std::vector<Worker> workers;
  workers.push_back(job.ComeBack());
  job.Run(&workers);
  CHECK(job.hvdd.Count(Kind::kNotice) == 1);
}

TEST_CASE("the store's calls are a rank's, too, and say of themselves why not") {
  Job job(1);
  StoreAnswer answer;
  Worker wrong = job.ComeBack();
  wrong.ClaimStore(std::string(32, '0'));
  REQUIRE(DecodeStoreAnswer(wrong.ReceiveBytes(), &answer));
  CHECK(answer.outcome == StoreOutcome::kRefused);
  CHECK_THAT(answer.text, Contains("wrong token"));
  Worker old = job.ComeBack();
  old.ClaimStore(job.links[0].token, kLinkBProtocol - 1);
  REQUIRE(DecodeStoreAnswer(old.ReceiveBytes(), &answer));
  CHECK_THAT(answer.text, Contains("install the same version of both"));
  // One that has a rank's token takes nothing from the rank's own link.
  Worker asks = job.ComeBack();
  asks.ClaimStore(job.links[0].token);
  std::vector<Worker> workers;
  workers.push_back(job.ComeBack());
  job.Run(&workers);
}

TEST_CASE("whoever comes and goes without a word is no matter") {
  Job job(1);
  { Worker passing = job.ComeBack(); }
  std::vector<Worker> workers;
  workers.push_back(job.ComeBack());
  job.Run(&workers);
  CHECK(job.hvdd.Count(Kind::kNotice) == 0);
}

TEST_CASE("a rank that sends rubbish is told as that") {
  for (const char* rubbish : {"\xff\xff\xff\xff", "\1\0\0\0\xff"}) {
    Job job(2);
    std::vector<Worker> workers;
    for (int rank = 0; rank < 2; ++rank) workers.push_back(job.ComeBack());
    job.Run(&workers);
    workers[1].SendBytes(std::string(rubbish, rubbish[0] == '\1' ? 5 : 4));
    const auto broke = job.hvdd.Await(Kind::kRankBroke);
    REQUIRE(broke.has_value());
    CHECK_THAT(broke->rank_broke().message(), Contains("sent hvdd what is no message"));
  }
}

TEST_CASE("a rank that sends more descriptors than any message takes is told as that") {
  Job job(2);
  std::vector<Worker> workers;
  for (int rank = 0; rank < 2; ++rank) workers.push_back(job.ComeBack());
  job.Run(&workers);
  workers[0].AddressWithArena(4096, {0, 1, 2});
  const auto broke = job.hvdd.Await(Kind::kRankBroke);
  REQUIRE(broke.has_value());
  CHECK_THAT(broke->rank_broke().message(), Contains("sent hvdd what is no message"));
}

}  // namespace
}  // namespace hvd::daemon
