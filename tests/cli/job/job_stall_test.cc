// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "cli/job/job_state.h"

namespace hvd::cli {
namespace {

// Two hosts with a rank each, running; rank 0 waits for "t".
struct StalledJob {
  explicit StalledJob(double abort_s = 0)  // told from 10 s on
      : state(Topology({{"a", 1}, {"b", 1}}), Policy(abort_s), 0) {
    for (const int host : {0, 1}) state.HostGreeted(host, 0);
    for (const int host : {0, 1}) {
      v1::Event event;
      event.mutable_launched();
      state.Heard(host, event, 0);
    }
    state.TakeActions();
  }
  static JobPolicy Policy(double abort_s) {
    JobPolicy policy;
    policy.stall.warn_s = 10;
    policy.stall.abort_s = abort_s;
    return policy;
  }

  void Due(int host, double now) {
    v1::Event event;
    event.mutable_stall_due()->set_waited_s(10);
    state.Heard(host, event, now);
  }
  void Answer(int host, double waited_s, double now) {
    v1::Event event;
    v1::HostPending& pending = *event.mutable_host_pending();
    pending.add_activities("thinking");
    if (host == 0) {
      v1::WaitingTensor& tensor = *pending.add_tensors();
      tensor.set_name("t");
      tensor.set_what("barrier");
      tensor.set_waited_s(waited_s);
      tensor.add_ranks(0);
    }
    state.Heard(host, event, now);
  }
  // Questions sent, and what is said.
  std::pair<int, std::string> Wants() {
    std::pair<int, std::string> wants;
    for (const Action& action : state.TakeActions()) {
      if (action.kind == Action::kSend && action.command.has_ask_pending()) ++wants.first;
      if (action.kind == Action::kSay) wants.second += action.text;
    }
    return wants;
  }

  JobState state;
};

TEST_CASE("one question for all hosts that notice a stall; told when all have answered") {
  StalledJob job;
  job.Due(0, 10);
  job.Due(1, 10.1);
  CHECK(job.Wants().first == 1);
  job.Answer(0, 10, 10.2);
  CHECK(job.Wants().second.empty());
  job.Answer(1, 0, 10.3);
  CHECK(job.Wants().second ==
        "stalled for 10 s: 't' (barrier) waits for rank 1\n  rank 1 on b: thinking");
  job.Due(0, 20);
  CHECK(job.Wants().first == 1);
}

TEST_CASE("a host that does not answer holds the notice up for a second") {
  StalledJob job;
  job.Due(0, 10);
  job.Answer(0, 10, 10.2);
  CHECK(job.state.deadline() == Approx(11));
  job.Wants();
  job.state.Tick(11);
  CHECK(job.Wants().second.find("its host does not answer") != std::string::npos);
}

TEST_CASE("the job ends when a stall outlasts its limit, with the same words and code 124") {
  StalledJob job(30);
  job.Due(0, 10);
  job.Answer(0, 10, 10);
  job.Answer(1, 0, 10);
  CHECK(job.state.facts().ending == Ending::kNone);
  job.Due(0, 30);
  job.Answer(0, 30, 30);
  job.Answer(1, 0, 30);
  CHECK(job.state.facts().ending == Ending::kStalled);
  CHECK(job.state.facts().ending_text.find("'t' (barrier) waits for rank 1") != std::string::npos);
  CHECK(Judge(job.state.facts()).exit_code == 124);
}

TEST_CASE("a limit below the time of the notice ends the job all the same") {
  StalledJob job(4);
  job.Due(0, 4);
  SECTION("the stall has lasted") {
    job.Answer(0, 4, 4);
    job.Answer(1, 0, 4);
    CHECK(job.state.facts().ending == Ending::kStalled);
    CHECK(job.state.facts().ending_text.find("'t' (barrier) waits for rank 1") !=
          std::string::npos);
  }
  SECTION("it has gone on") {
    job.Wants();
    job.Answer(0, 3.9, 4);
    job.Answer(1, 0, 4);
    CHECK(job.state.facts().ending == Ending::kNone);
    CHECK(job.Wants().second.empty());
  }
}

TEST_CASE("what has gone on meanwhile is not told") {
  StalledJob job;
  job.Due(0, 10);
  job.Answer(0, 0.1, 10);
  job.Answer(1, 0, 10);
  CHECK(job.Wants().second.empty());
}

}  // namespace
}  // namespace hvd::cli
