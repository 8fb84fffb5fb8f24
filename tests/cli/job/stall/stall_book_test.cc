// SPDX-License-Identifier: Apache-2.0
#include "cli/job/stall/stall_book.h"

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

const Topology kWorld({{"alpha", 2}, {"beta", 2}});

void Wait(v1::HostPending* host, const std::string& name, double seconds,
          std::vector<uint32_t> ranks) {
  v1::WaitingTensor& tensor = *host->add_tensors();
  tensor.set_name(name);
  tensor.set_what("allreduce float32 [4] sum");
  tensor.set_waited_s(seconds);
  for (const uint32_t rank : ranks) tensor.add_ranks(rank);
}

v1::HostPending Host(std::vector<std::string> activities) {
  v1::HostPending host;
  for (const std::string& activity : activities) host.add_activities(activity);
  return host;
}

TEST_CASE("who has not submitted what others wait for is named with what it does") {
  StallBook book(&kWorld);
  book.Begin();
  v1::HostPending alpha = Host({"waiting in a", "waiting in a"});
  Wait(&alpha, "a", 61, {0, 1});
  Wait(&alpha, "young", 1, {0});
  book.Answered(0, alpha);
  CHECK_FALSE(book.Complete({0, 1}));
  v1::HostPending beta = Host({"waiting in a", "outside any collective, last b"});
  Wait(&beta, "a", 60, {2});
  book.Answered(1, beta);
  CHECK(book.Complete({0, 1}));
  const StallBook::Report report = book.End(60);
  CHECK(report.waited_s == 61);
  CHECK(report.text ==
        "stalled for 61 s: 'a' (allreduce float32 [4] sum) waits for rank 3\n"
        "  rank 3 on beta: outside any collective, last b");
  CHECK_FALSE(book.asking());
}

TEST_CASE(
    "a whole host that has nothing pending is missing; tensors with the same ranks are folded") {
  StallBook book(&kWorld);
  book.Begin();
  v1::HostPending alpha = Host({"x", "y"});
  for (int i = 0; i < 8; ++i) Wait(&alpha, "t" + std::to_string(i), 5, {0, 1});
  book.Answered(0, alpha);
  book.Answered(1, Host({"p", "q"}));
  const std::string text = book.End(1).text;
  CHECK(text.find("'t5' (allreduce float32 [4] sum) and 2 more wait for ranks 2,3") !=
        std::string::npos);
  CHECK(text.find("rank 2 on beta: p\n  rank 3 on beta: q") != std::string::npos);
}

TEST_CASE("names that differ late are two tensors, and are told apart") {
  StallBook book(&kWorld);
  book.Begin();
  const std::string head(300, 'h');
  v1::HostPending alpha = Host({"x", "y"});
  Wait(&alpha, head + ".one", 5, {0, 1});
  v1::HostPending beta = Host({"p", "q"});
  Wait(&beta, head + ".two", 5, {2, 3});
  book.Answered(0, alpha);
  book.Answered(1, beta);
  const std::string text = book.End(1).text;
  CHECK(text.find("hhh.one' (allreduce float32 [4] sum) waits for ranks 2,3") != std::string::npos);
  CHECK(text.find("hhh.two' (allreduce float32 [4] sum) waits for ranks 0,1") != std::string::npos);
}

TEST_CASE("a receive waits for its sender alone") {
  StallBook book(&kWorld);
  book.Begin();
  v1::HostPending alpha = Host({"x", "y"});
  Wait(&alpha, "send from rank 3 to rank 1", 5, {1});
  alpha.mutable_tensors(0)->add_members(1);
  alpha.mutable_tensors(0)->add_members(3);
  book.Answered(0, alpha);
  v1::HostPending beta = Host({"p", "q"});
  SECTION("that has not sent") {
    book.Answered(1, beta);
    CHECK(book.End(1).text.find("waits for rank 3\n  rank 3 on beta: q") != std::string::npos);
  }
  SECTION("that has: nobody is missing") {
    Wait(&beta, "send from rank 3 to rank 1", 4, {3});
    beta.mutable_tensors(0)->add_members(3);
    beta.mutable_tensors(0)->add_members(1);
    book.Answered(1, beta);
    CHECK(book.End(1).text.empty());
  }
}

TEST_CASE("what a rank calls a tensor cannot forge a line") {
  StallBook book(&kWorld);
  book.Begin();
  v1::HostPending alpha = Host({"x", "outside\nhvdrun: forged"});
  Wait(&alpha, "\x1b[2J\nhvdrun: forged", 5, {0, 2, 3});
  alpha.mutable_tensors(0)->set_what("allreduce\r\x9b");
  book.Answered(0, alpha);
  CHECK(book.End(1).text ==
        "stalled for 5 s: '\\x1b[2J\\nhvdrun: forged' (allreduce\\r\\x9b) waits for rank 1\n"
        "  rank 1 on alpha: outside\\nhvdrun: forged");
}

TEST_CASE("a joined rank and ranks outside the process set are not missing") {
  StallBook book(&kWorld);
  book.Begin();
  v1::HostPending alpha = Host({"x", "y"});
  Wait(&alpha, "all", 5, {0, 1, 2});
  Wait(&alpha, "set", 5, {0});
  alpha.mutable_tensors(1)->set_set(2);
  alpha.mutable_tensors(1)->add_members(0);
  alpha.mutable_tensors(1)->add_members(1);
  book.Answered(0, alpha);
  v1::HostPending beta = Host({"p", "q"});
  beta.add_joined(3);
  book.Answered(1, beta);
  const std::string text = book.End(1).text;
  CHECK(text.find("'set' (allreduce float32 [4] sum, process set 2) waits for rank 1") !=
        std::string::npos);
  CHECK(text.find("'all'") == std::string::npos);
}

TEST_CASE("members that no job has are left out") {
  StallBook book(&kWorld);
  book.Begin();
  v1::HostPending alpha = Host({"x", "y"});
  Wait(&alpha, "a", 5, {0});
  for (const uint32_t member : {0u, 1u, 4u, 0x7fffffffu, 0xffffffffu}) {
    alpha.mutable_tensors(0)->add_members(member);
  }
  book.Answered(0, alpha);
  CHECK(book.End(1).text ==
        "stalled for 5 s: 'a' (allreduce float32 [4] sum) waits for rank 1\n"
        "  rank 1 on alpha: y");
}

TEST_CASE("nobody missing is no stall; a silent host is said so") {
  StallBook book(&kWorld);
  book.Begin();
  v1::HostPending alpha = Host({"x", "y"});
  Wait(&alpha, "a", 5, {0, 1, 2, 3});
  book.Answered(0, alpha);
  CHECK(book.End(1).text.empty());
  book.Begin();
  v1::HostPending again = Host({"x", "y"});
  Wait(&again, "a", 5, {0, 1});
  book.Answered(0, again);
  CHECK(book.End(1).text.find("rank 2 on beta: its host does not answer") != std::string::npos);
}

TEST_CASE("a device that does not finish is told beside what ranks are missing in") {
  StallBook book(&kWorld);
  book.Begin();
  v1::HostPending alpha = Host({"waiting in a", "outside any collective, its device works on x"});
  Wait(&alpha, "a", 61, {0});
  v1::RankWork& work = *alpha.add_work();
  work.set_rank(1);
  work.set_what("allreduce 'x'");
  work.set_still_s(65);
  work.set_on_device(true);
  book.Answered(0, alpha);
  v1::HostPending beta = Host({"waiting in a", "waiting in a"});
  Wait(&beta, "a", 60, {2, 3});
  book.Answered(1, beta);
  const StallBook::Report report = book.End(60);
  CHECK(report.waited_s == 65);
  CHECK(report.text ==
        "stalled for 65 s: the device of rank 1 does not finish allreduce 'x'\n"
        "stalled for 61 s: 'a' (allreduce float32 [4] sum) waits for rank 1\n"
        "  rank 1 on alpha: outside any collective, its device works on x");
}

}  // namespace
}  // namespace hvd::cli
