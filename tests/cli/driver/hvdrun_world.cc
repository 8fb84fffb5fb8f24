// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/driver/hvdrun_world.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/driver/driver.h"
#include "cli/reach/spawner.h"
#include "tests/support/patience.h"

namespace hvd::cli {
namespace {

double Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

std::string FakePath() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_hvdd";
}

int CountMarked(const std::string& mark) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().find(mark) != std::string::npos) ++count;
  }
  return count;
}

void BecomeQuiet() {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, 0);
  dup2(null, 1);
}

}  // namespace

RunOptions FakeOptions(const std::string& hosts, int np, std::vector<std::string> command) {
  RunOptions options;
  options.np = np;
  options.hosts = *ParseHostList(hosts, "-H");
  options.topology = *Topology::Place(options.hosts, np);
  for (size_t i = 0; i < options.topology.hosts().size(); ++i) {
    options.host_of.push_back(options.hosts[i]);
    options.is_local.push_back(true);
  }
  options.command = std::move(command);
  options.directory = "/";
  options.grace_s = 0.5;
  options.stdin_rank = -1;
  return options;
}

FakeJob::FakeJob(RunOptions options, std::vector<std::string> environment)
    : options_(std::move(options)), began_(Now()) {
  DriverSetup setup;
  if (!MakeJobSecrets(&setup.secrets)) abort();
  mark_ = "FAKE_MARK=" + setup.secrets.job;
  environment.push_back(mark_);
  setup.start = {setup.secrets.marker, FakePath(), true};
  SpawnerPlan plan;
  plan.patience_s = options_.grace_s + 0.5;
  const int hosts = static_cast<int>(options_.topology.hosts().size());
  for (int host = 0; host < std::min(hosts, kStartsAtOnce); ++host) {
    if (!options_.elastic.has_value())
      plan.argv.push_back(*DaemonArgv(options_, setup.start, TargetOf(options_, host)));
  }
  Descriptor driver_console, driver_spawner, spawner_driver;
  if (!MakeFramePair(&console_, &driver_console)) abort();
  if (!MakeFramePair(&driver_spawner, &spawner_driver)) abort();
  spawner_ = fork();
  if (spawner_ == 0) {
    BecomeQuiet();
    for (std::string& entry : environment) putenv(entry.data());
    console_.Reset();
    driver_console.Reset();
    driver_spawner.Reset();
    RunSpawner(plan, std::move(spawner_driver));
    _exit(0);
  }
  driver_ = fork();
  if (driver_ == 0) {
    BecomeQuiet();
    console_.Reset();
    spawner_driver.Reset();
    setup.options = &options_;
    setup.console = std::move(driver_console);
    setup.spawner = std::move(driver_spawner);
    RunDriver(std::move(setup));
  }
}

FakeJob::~FakeJob() {
  for (const pid_t pid : {driver_, spawner_}) {
    if (pid > 0) kill(pid, SIGKILL);
    if (pid > 0) waitpid(pid, nullptr, 0);
  }
}

bool FakeJob::TakeOne(double until) {
  pollfd wait = {console_.get(), POLLIN, 0};
  const double left = until - Now();
  if (left <= 0 || poll(&wait, 1, static_cast<int>(left * 1000) + 1) <= 0) return false;
  Frame frame;
  if (ReceiveFrame(console_.get(), &frame) != FrameResult::kDone) return false;
  if (frame.kind == FrameKind::kOutput) {
    (frame.is_stderr ? outcome_.err : outcome_.out) += frame.text;
    Frame taken;
    taken.kind = FrameKind::kOutputTaken;
    taken.number = output_taken_ += frame.text.size();
    Send(std::move(taken));
  }
  if (frame.kind == FrameKind::kDrain) {
    Frame drained;
    drained.kind = FrameKind::kDrained;
    Send(std::move(drained));
  }
  if (frame.kind == FrameKind::kNotice) outcome_.notices += frame.text;
  if (frame.kind == FrameKind::kFinal) {
    outcome_.finished = true;
    outcome_.exit_code = static_cast<int>(frame.number);
    outcome_.verdict = frame.text;
  }
  return true;
}

JobOutcome FakeJob::Wait(double seconds) {
  const double until = Now() + Patient(seconds);
  while (!outcome_.finished && TakeOne(until)) continue;
  outcome_.seconds = Now() - began_;
  return outcome_;
}

bool FakeJob::WaitFor(const std::string& text) {
  const double until = Now() + Patient(10);
  while (pending_text().find(text) == std::string::npos) {
    if (!TakeOne(until)) return false;
  }
  return true;
}

void FakeJob::Send(Frame frame) { SendFrame(console_.get(), frame); }

bool FakeJob::AllGone(double seconds) {
  const double until = Now() + Patient(seconds);
  while (true) {
    for (pid_t* pid : {&driver_, &spawner_}) {
      if (*pid > 0 && waitpid(*pid, nullptr, WNOHANG) == *pid) *pid = -1;
    }
    if (driver_ < 0 && spawner_ < 0 && CountMarked(mark_) == 0) return true;
    if (Now() > until) return false;
    poll(nullptr, 0, 5);  // the kernel tells nobody when another's child is gone
  }
}

}  // namespace hvd::cli
