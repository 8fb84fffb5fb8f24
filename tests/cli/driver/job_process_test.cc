// SPDX-License-Identifier: Apache-2.0
// The driver and the spawner for real, with a daemon that plays scenes.
#include <signal.h>

#include <catch2/catch.hpp>

#include "cli/reach/spawner.h"
#include "tests/cli/driver/hvdrun_world.h"
#include "tests/support/patience.h"

namespace hvd::cli {
namespace {

bool Has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

TEST_CASE("a job whose ranks all exit 0 ends quietly and at once") {
  FakeJob job(FakeOptions("a:2,b:2", 4, {"true"}));
  const JobOutcome outcome = job.Wait();
  REQUIRE(outcome.finished);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.verdict.empty());
  CHECK(outcome.seconds < Patient(2));
  CHECK(job.AllGone(2));
}

TEST_CASE("a rank's exit code is the job's, and the others are stopped") {
  FakeJob job(FakeOptions("a:2,b:2", 4, {"exit", "3", "7"}));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 7);
  Has(outcome.verdict, "rank 3 on b exited with code 7");
  Has(outcome.verdict, "the last words");
  Has(outcome.verdict, "ranks 0-2 were stopped because rank 3 failed");
  CHECK(job.AllGone(2));
}

TEST_CASE("a killed rank gives 128 + its signal") {
  FakeJob job(FakeOptions("a:2", 2, {"signal-death", "1", "9"}));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 137);
  Has(outcome.verdict, "rank 1 on a was killed by signal 9 (Killed)");
}

TEST_CASE("a command that no host can start") {
  FakeJob job(FakeOptions("a:1,b:1", 2, {"nolaunch"}));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 127);
  Has(outcome.verdict, "cannot start on hosts a, b: no-such-command: not found on PATH");
}

TEST_CASE("a daemon that dies is a lost host") {
  FakeJob job(FakeOptions("a:1,b:1", 2, {"die", "1"}));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 125);
  Has(outcome.verdict,
      "lost host b: the connection to its hvdd closed; hvdd was killed by signal 9");
  CHECK(job.AllGone(2));
}

TEST_CASE("a daemon that no longer answers is lost when its lease is over") {
  RunOptions options = FakeOptions("a:1", 1, {"wait"});
  options.lease_s = 0.6;
  FakeJob job(std::move(options), {"FAKE_MUTE=1"});
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 125);
  Has(outcome.verdict, "lost host a: no sign of life");
  CHECK(outcome.seconds > 1.0);
  CHECK(outcome.seconds < Patient(3));
  CHECK(job.AllGone(3));
}

TEST_CASE("a daemon whose words cannot be read is lost, and not waited for") {
  FakeJob job(FakeOptions("a:1,b:1", 2, {"garbled", "1"}));
  const JobOutcome outcome = job.Wait();
  REQUIRE(outcome.finished);
  CHECK(outcome.exit_code == 125);
  Has(outcome.verdict, "lost host b: the connection to its hvdd closed");
  CHECK(job.AllGone(2));
}

TEST_CASE("noise before the hello is skipped") {
  FakeJob job(FakeOptions("a:1", 1, {"true"}), {"FAKE_HVDD=noise"});
  CHECK(job.Wait().exit_code == 0);
}

TEST_CASE("no hello within the start timeout shows what came instead") {
  RunOptions options = FakeOptions("a:1", 1, {"true"});
  options.start_timeout_s = 0.4;
  FakeJob job(std::move(options), {"FAKE_HVDD=silent"});
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 125);
  Has(outcome.verdict, "no word from hvdd within --start-timeout 0.4 s");
  Has(outcome.verdict, "| stuck in a start-up file");
  CHECK(job.AllGone(3));
}

TEST_CASE("another protocol is named with both versions") {
  FakeJob job(FakeOptions("a:1", 1, {"true"}), {"FAKE_HVDD=protocol"});
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 125);
  Has(outcome.verdict, "hvdd 0.0-fake on a speaks link protocol 999, hvdrun ");
}

TEST_CASE("bytes after the hello that are no gRPC are named as a start-up file's") {
  FakeJob job(FakeOptions("a:1", 1, {"true"}), {"FAKE_HVDD=late"});
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 125);
  Has(outcome.verdict, "something there prints to stdout after the login");
  Has(outcome.verdict, "backup finished");
}

TEST_CASE("a launch that is interrupted leaves no login behind") {
  RunOptions options = FakeOptions("a:1,b:1", 2, {"true"});
  options.grace_s = 30;
  options.verbose = true;
  FakeJob job(std::move(options), {"FAKE_HVDD=stuck"});
  REQUIRE(job.WaitFor("host b: "));
  Frame interrupt;
  interrupt.kind = FrameKind::kSignal;
  interrupt.number = SIGINT;
  job.Send(std::move(interrupt));
  CHECK(job.Wait().exit_code == 130);
  CHECK(job.AllGone(2));
}

TEST_CASE("hosts beyond those that the spawner starts by itself are started by the driver's word") {
  std::string hosts;
  for (int i = 0; i < kStartsAtOnce + 3; ++i) hosts += (i ? ",h" : "h") + std::to_string(i) + ":1";
  FakeJob job(FakeOptions(hosts, kStartsAtOnce + 3, {"true"}));
  CHECK(job.Wait().exit_code == 0);
  CHECK(job.AllGone(2));
}

TEST_CASE("a launch that has failed begins no further logins") {
  std::string hosts;
  for (int i = 0; i < kStartsAtOnce + 6; ++i) hosts += (i ? ",h" : "h") + std::to_string(i) + ":1";
  RunOptions options = FakeOptions(hosts, kStartsAtOnce + 6, {"true"});
  options.verbose = true;
  FakeJob job(std::move(options), {"FAKE_HVDD=fail"});
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 125);
  Has(outcome.notices, "host h0: ");
  CHECK(outcome.notices.find("host h" + std::to_string(kStartsAtOnce) + ": ") == std::string::npos);
  CHECK(job.AllGone(2));
}

TEST_CASE("the end of a child whose status somebody else has taken is an end") {
  struct sigaction ignore = {}, before;
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGCHLD, &ignore, &before);  // the kernel takes the status then
  FakeJob job(FakeOptions("a:1", 1, {"true"}), {"FAKE_HVDD=fail"});
  sigaction(SIGCHLD, &before, nullptr);
  const JobOutcome outcome = job.Wait(5);
  REQUIRE(outcome.finished);
  CHECK(outcome.exit_code == 125);
  CHECK(job.AllGone(2));
}

TEST_CASE("the same fault on many hosts is told once") {
  FakeJob job(FakeOptions("a:1,b:1,c:1", 3, {"true"}), {"FAKE_HVDD=fail"});
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 125);
  Has(outcome.verdict, "cannot start on hosts a, b, c: connection refused");
}

TEST_CASE("output arrives whole and before the verdict") {
  FakeJob job(FakeOptions("a:1", 1, {"print", "3000000"}));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == std::string(3000000, 'x') + "\n");
}

TEST_CASE("epochs: addresses up, table down, ready up, go down, again and again") {
  FakeJob once(FakeOptions("a:2,b:1", 3, {"epoch"}));
  CHECK(once.Wait().exit_code == 0);
  FakeJob twice(FakeOptions("a:2,b:1", 3, {"twice"}));
  CHECK(twice.Wait().exit_code == 0);
}

TEST_CASE("ranks that never join are named") {
  RunOptions options = FakeOptions("a:2,b:2", 4, {"join-some", "0"});
  options.start_timeout_s = 0.5;
  FakeJob job(std::move(options));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 125);
  Has(outcome.verdict, "still without hvd's init");
  Has(outcome.verdict, "b (ranks 2,3)");
}

TEST_CASE("a rank that exits 0 while others need it is the culprit of their errors") {
  FakeJob job(FakeOptions("a:2", 2, {"early", "1"}));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 1);
  Has(outcome.verdict, "rank 1 on a exited (code 0) without hvd's shutdown");
}

TEST_CASE("a broken link of a rank whose own process lives on") {
  FakeJob job(FakeOptions("a:2", 2, {"broke", "1"}));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 1);
  Has(outcome.verdict, "hvdrun: rank 1 on a closed its link to hvdd, ");
}

TEST_CASE("--timeout ends the job with 124") {
  RunOptions options = FakeOptions("a:2", 2, {"wait"});
  options.run_timeout_s = 0.3;
  FakeJob job(std::move(options));
  CHECK(job.Wait().exit_code == 124);
}

Frame SignalFrame(int signal) {
  Frame frame;
  frame.kind = FrameKind::kSignal;
  frame.number = signal;
  return frame;
}

TEST_CASE("Ctrl-C stops the ranks and shows their states") {
  RunOptions options = FakeOptions("a:2", 2, {"wait"});
  options.verbose = true;
  FakeJob job(std::move(options));
  REQUIRE(job.WaitFor("containment by subreaper"));
  job.Send(SignalFrame(SIGINT));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 130);
  Has(outcome.notices, "rank  host");
  CHECK(job.AllGone(2));
}

TEST_CASE("SIGTERM gives 143, other signals reach the ranks") {
  RunOptions options = FakeOptions("a:1", 1, {"wait"});
  options.verbose = true;
  FakeJob job(options);
  REQUIRE(job.WaitFor("containment by subreaper"));
  job.Send(SignalFrame(SIGTERM));
  CHECK(job.Wait().exit_code == 143);
  options.command = {"signal"};
  FakeJob other(options);
  REQUIRE(other.WaitFor("containment by subreaper"));
  other.Send(SignalFrame(SIGUSR1));
  CHECK(other.Wait().exit_code == 0);
}

TEST_CASE("a host that does not stop is left after the grace and named as unknown") {
  RunOptions options = FakeOptions("a:1", 1, {"stubborn"});
  options.verbose = true;
  FakeJob job(std::move(options));
  REQUIRE(job.WaitFor("containment by subreaper"));
  job.Send(SignalFrame(SIGINT));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 130);
  Has(outcome.verdict, "not known to have ended");
  CHECK(job.AllGone(3));
}

TEST_CASE("stdin reaches the rank with its end, in the window that the driver gives") {
  RunOptions options = FakeOptions("a:1", 1, {"cat"});
  options.stdin_rank = 0;
  options.verbose = true;
  FakeJob job(std::move(options));
  REQUIRE(job.WaitFor("containment by subreaper"));
  Frame piece;
  piece.kind = FrameKind::kStdin;
  piece.text = "one\ntwo\n";
  job.Send(std::move(piece));
  Frame end;
  end.kind = FrameKind::kStdin;
  end.end = true;
  job.Send(std::move(end));
  const JobOutcome outcome = job.Wait();
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == "one\ntwo\n");
}

TEST_CASE("nothing is left when the console, the driver or the spawner is killed") {
  RunOptions options = FakeOptions("a:1,b:1", 2, {"wait"});
  options.verbose = true;
  SECTION("console") {
    FakeJob job(options);
    REQUIRE(job.WaitFor("containment by subreaper"));
    job.CloseConsole();
    CHECK(job.AllGone(4));
  }
  SECTION("driver") {
    FakeJob job(options);
    REQUIRE(job.WaitFor("containment by subreaper"));
    kill(job.driver(), SIGKILL);
    CHECK_FALSE(job.Wait().finished);
    CHECK(job.AllGone(4));
  }
  SECTION("spawner") {
    FakeJob job(options);
    REQUIRE(job.WaitFor("containment by subreaper"));
    kill(job.spawner(), SIGKILL);
    const JobOutcome outcome = job.Wait();
    CHECK(outcome.exit_code == 125);
    Has(outcome.verdict, "spawner process died");
    CHECK(job.AllGone(4));
  }
}

}  // namespace
}  // namespace hvd::cli
