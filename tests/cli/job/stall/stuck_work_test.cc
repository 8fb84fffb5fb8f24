// SPDX-License-Identifier: Apache-2.0
#include "cli/job/stall/stuck_work.h"

#include <catch2/catch.hpp>

#include "cli/job/stall/stall_book.h"
#include "proto/page/message_counts.h"

namespace hvd::cli {
namespace {

constexpr uint32_t kRing = 2;  // a channel of collectives

// Three hosts with a rank each, all inside the same collective for 9 s.
struct StuckJob {
  StuckJob() {
    for (uint32_t rank : {0u, 1u, 2u}) {
      answers[static_cast<int>(rank)].add_activities("in allreduce 'x'");
      InWork(rank, 9, true);
    }
  }
  v1::HostPending& host(uint32_t rank) { return answers[static_cast<int>(rank)]; }
  void InWork(uint32_t rank, double still_s, bool executes) {
    host(rank).clear_work();
    v1::RankWork& work = *host(rank).add_work();
    work.set_rank(rank);
    work.set_what("allreduce 'x'");
    work.set_still_s(still_s);
    work.set_executes(executes);
  }
  // Nobody executes it: all have asked for it for 9 s.
  void WaitForAgreement() {
    v1::WaitingTensor& tensor = *host(0).add_tensors();
    tensor.set_name("x");
    tensor.set_waited_s(9);
    for (const uint32_t rank : {0u, 1u, 2u}) {
      InWork(rank, 9, false);
      tensor.add_ranks(rank);
    }
  }
  void Gone(uint32_t rank) { host(rank).clear_work(); }
  v1::MessagesSeen& Seen(uint32_t rank, uint32_t peer, uint32_t channel = kRing) {
    v1::MessagesSeen& seen = *host(rank).add_messages();
    seen.set_rank(rank);
    seen.set_peer(peer);
    seen.set_channel(channel);
    return seen;
  }
  // `from` has sent so many messages of the ring, `to` has got so many and waits for more.
  void Passes(uint32_t from, uint32_t to, uint32_t sent, uint32_t came) {
    Seen(from, to).set_sent(sent);
    v1::MessagesSeen& seen = Seen(to, from);
    seen.set_came(came);
    seen.set_asked(came + 2);
  }
  StuckWork Only() const {
    const auto found = FindStuck(answers, world, 4);
    REQUIRE(found.size() == 1);
    CHECK(found[0].what == "allreduce 'x'");
    CHECK(found[0].still_s == 9);
    return found[0];
  }

  const Topology world{{{"a", 1}, {"b", 1}, {"c", 1}}};
  PendingByHost answers;
};

TEST_CASE("what moves on one host is not stuck, and what has stood still for less is not told") {
  StuckJob job;
  job.InWork(1, 0.5, true);
  CHECK(FindStuck(job.answers, job.world, 4).empty());
  job.InWork(1, 9, true);
  CHECK(FindStuck(job.answers, job.world, 10).empty());
}

TEST_CASE("a stopped rank is what the others wait for, whatever else is missing") {
  StuckJob job;
  job.host(1).add_held()->set_rank(1);
  job.Passes(0, 1, 4, 2);
  job.Passes(1, 2, 2, 2);
  job.Passes(2, 0, 2, 2);
  SECTION("inside the collective") {}
  SECTION("beyond it, with data still in its hands") { job.Gone(1); }
  const StuckWork stuck = job.Only();
  CHECK(stuck.why == StuckWork::kStopped);
  CHECK(stuck.ranks == std::vector<int>{1});
}

TEST_CASE("whoever waits for the others' end waits in vain for a rank that is held") {
  StuckJob job;
  for (const uint32_t rank : {1u, 2u}) job.Gone(rank);
  job.InWork(0, 9, false);  // in hvd_join or hvd_shutdown: nothing is asked for
  v1::HeldRank& held = *job.host(1).add_held();
  held.set_rank(1);
  SECTION("for long") {
    held.set_held_s(7);
    const auto found = FindStuck(job.answers, job.world, 4);
    REQUIRE(found.size() == 1);
    CHECK(found[0].why == StuckWork::kEnds);
    CHECK(found[0].ranks == std::vector<int>{1});
    CHECK(found[0].still_s == 7);
  }
  SECTION("for a moment") {
    held.set_held_s(1);
    CHECK(FindStuck(job.answers, job.world, 4).empty());
  }
  SECTION("but not for one that waits itself") {
    held.set_held_s(7);
    job.InWork(1, 9, false);
    CHECK(FindStuck(job.answers, job.world, 4).empty());
  }
}

TEST_CASE("a stopped rank that nobody waits for is not to blame") {
  StuckJob job;
  job.Gone(1);
  job.host(1).add_held()->set_rank(1);
  CHECK(job.Only().why == StuckWork::kUnknown);
}

TEST_CASE("where more was sent than comes, the link between the two hosts is cut") {
  StuckJob job;
  // In this ring all wait, but only what b has sent to c is lost.
  job.Passes(0, 1, 5, 5);
  job.Passes(1, 2, 5, 3);
  job.Passes(2, 0, 4, 4);
  const StuckWork stuck = job.Only();
  CHECK(stuck.why == StuckWork::kLink);
  CHECK(stuck.links == std::vector<std::pair<int, int>>{{1, 2}});
  CHECK(stuck.ranks == std::vector<int>{1, 2});
}

TEST_CASE("whoever has gone on has sent all of it, whether or not that is still known") {
  StuckJob job;
  job.Gone(0);
  job.Seen(1, 0).set_asked(1);
  const StuckWork stuck = job.Only();
  CHECK(stuck.why == StuckWork::kLink);
  CHECK(stuck.links == std::vector<std::pair<int, int>>{{0, 1}});
}

TEST_CASE("messages are of one step and process set") {
  StuckJob job;
  job.Seen(1, 0).set_asked(1);  // b waits for a's first one of step 0
  v1::MessagesSeen& other = job.Seen(0, 1);
  other.set_sent(3);
  SECTION("another step") { other.set_step(2); }
  SECTION("another process set") { other.set_set(1); }
  SECTION("another channel") { other.set_channel(4); }
  CHECK(job.Only().why == StuckWork::kUnknown);
}

TEST_CASE("a leader's listening is a wait only while it executes nothing") {
  StuckJob job;
  job.Seen(0, 1, kAgreementMessages).set_asked(4);
  job.Seen(1, 0, kAgreementMessages).set_sent(1);
  SECTION("it executes") { CHECK(job.Only().why == StuckWork::kUnknown); }
  SECTION("it listens") {
    job.WaitForAgreement();
    const StuckWork stuck = job.Only();
    CHECK(stuck.why == StuckWork::kLink);
    CHECK(stuck.links == std::vector<std::pair<int, int>>{{0, 1}});
    CHECK_FALSE(stuck.executing);
  }
  SECTION("and all that was sent has come") {
    job.WaitForAgreement();
    job.host(0).mutable_messages(0)->set_came(1);
    CHECK(job.Only().why == StuckWork::kUnknown);
  }
}

TEST_CASE("whoever waits for the others' end is not stuck, even when it is stopped") {
  StuckJob job;
  job.Gone(1);
  job.Gone(2);
  job.InWork(0, 9, false);  // hvd_join, hvd_shutdown: no tensor
  CHECK(FindStuck(job.answers, job.world, 4).empty());
  job.host(0).add_held()->set_rank(0);
  job.host(0).add_silent(0);
  CHECK(FindStuck(job.answers, job.world, 4).empty());
}

TEST_CASE("a message that is on its way between two that live may take long") {
  for (const bool moving : {false, true}) {
    StuckJob job;
    job.WaitForAgreement();
    job.host(0).mutable_tensors(0)->set_moving(moving);
    CHECK(FindStuck(job.answers, job.world, 4).size() == (moving ? 0 : 1));
  }
}

TEST_CASE("a rank that cannot even ask, for another is stopped at the wrong place, is stuck") {
  StuckJob job;
  for (const uint32_t rank : {0u, 1u, 2u}) {
    job.InWork(rank, 9, false);
    job.host(rank).add_silent(rank);
  }
  job.host(1).add_held()->set_rank(1);
  CHECK(job.Only().why == StuckWork::kStopped);
}

TEST_CASE("a rank that neither waits nor gets on is named; words of no rank harm nobody") {
  StuckJob job;
  job.host(2).add_silent(2);
  job.host(0).add_held()->set_rank(77);
  job.host(0).add_silent(0xffffffff);
  v1::RankWork& nobody = *job.host(0).add_work();
  nobody.set_rank(0xfffffff0);
  job.Seen(0, 4000000000u).set_asked(1);
  const StuckWork stuck = job.Only();
  CHECK(stuck.why == StuckWork::kSilent);
  CHECK(stuck.ranks == std::vector<int>{2});
}

std::string Told(const StuckJob& job) {
  StallBook book(&job.world);
  book.Begin();
  for (const auto& [host, answer] : job.answers) book.Answered(host, answer);
  const StallBook::Report report = book.End(4);
  CHECK(report.waited_s == (report.text.empty() ? 0 : 9));
  return report.text;
}

TEST_CASE("a stop is told with who or what it waits for, and what those do") {
  StuckJob job;
  SECTION("a rank") {
    job.host(1).add_held()->set_rank(1);
    job.host(1).set_activities(0, "stopped by a signal (SIGSTOP?); in allreduce 'x'");
    CHECK(Told(job) ==
          "stalled for 9 s: allreduce 'x' waits for rank 1\n"
          "  rank 1 on b: stopped by a signal (SIGSTOP?); in allreduce 'x'");
  }
  SECTION("a link") {
    job.Passes(0, 2, 5, 3);
    const std::string text = Told(job);
    CHECK(text.find("stalled for 9 s: no data passes between a and c any more, though both hosts "
                    "live: allreduce 'x' waits for it") == 0);
    CHECK(text.find("\n  rank 0 on a: in allreduce 'x'\n  rank 2 on c: in") != std::string::npos);
  }
  SECTION("nothing that is known") {
    CHECK(Told(job).find("allreduce 'x' does not go on, and all of ranks 0-2 wait in it") !=
          std::string::npos);
  }
}

// Rank 0 waits for "y" for 9 s.
void AskForY(StuckJob* job) {
  v1::WaitingTensor& tensor = *job->host(0).add_tensors();
  tensor.set_name("y");
  tensor.set_what("barrier");
  tensor.set_waited_s(9);
  tensor.add_ranks(0);
}

TEST_CASE("who is missing is told, unless a collective that stands still is before it") {
  StuckJob job;
  AskForY(&job);
  SECTION("one that has not been agreed on is nothing else") {
    for (const uint32_t rank : {0u, 1u, 2u}) job.InWork(rank, 9, false);
    CHECK(Told(job).find("stalled for 9 s: 'y' (barrier) waits for ranks 1,2\n") == 0);
  }
  SECTION("one that has is told alone") {
    job.host(1).add_held()->set_rank(1);
    CHECK(Told(job).find("stalled for 9 s: allreduce 'x' waits for rank 1\n") == 0);
    CHECK(Told(job).find("'y'") == std::string::npos);
  }
  SECTION("one that moves is no reason: whoever is busy with it cannot say what it has asked for") {
    job.InWork(1, 0.1, true);
    job.InWork(2, 0.1, true);
    job.host(1).add_silent(1);
    CHECK(Told(job).find("stalled for 9 s: 'y' (barrier) waits for rank 2\n") == 0);
  }
}

TEST_CASE("what devices do not finish is told by what they work on, though all ranks go on") {
  StuckJob job;
  for (const uint32_t rank : {2u, 0u, 1u}) {
    job.InWork(rank, 0, true);
    v1::RankWork& work = *job.host(rank).add_work();
    work.set_rank(rank);
    work.set_what(rank == 1 ? "allreduce 'other'" : "allreduce 'x'");
    work.set_still_s(rank + 3);
    work.set_on_device(true);
  }
  const auto found = FindStuck(job.answers, job.world, 4);
  REQUIRE(found.size() == 2);
  CHECK(found[0].why == StuckWork::kDevice);
  CHECK(found[0].what == "allreduce 'other'");
  CHECK(found[0].still_s == 4);
  CHECK(found[0].ranks == std::vector<int>{1});
  CHECK(found[1].what == "allreduce 'x'");
  CHECK(found[1].ranks == std::vector<int>{2});  // rank 0's has worked for 3 s only
  CHECK(FindStuck(job.answers, job.world, 6).empty());
}

TEST_CASE("a rank that waits for nothing but its device is no stuck collective") {
  StuckJob job;
  for (const uint32_t rank : {0u, 1u, 2u}) {
    job.host(rank).mutable_work(0)->set_on_device(true);
    job.host(rank).mutable_work(0)->set_executes(false);
  }
  const StuckWork stuck = job.Only();
  CHECK(stuck.why == StuckWork::kDevice);
  CHECK(stuck.ranks == std::vector<int>{0, 1, 2});
}

}  // namespace
}  // namespace hvd::cli
