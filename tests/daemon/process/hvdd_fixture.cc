// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/process/hvdd_fixture.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "daemon/shim/process_tree.h"
#include "hvd/v1/link_a.grpc.pb.h"
#include "tests/support/patience.h"

namespace hvd::daemon {
namespace {

using Seconds = std::chrono::duration<double>;

std::string RandomHex() {
  std::random_device random;
  std::string hex;
  for (int i = 0; i < 32; ++i) hex += "0123456789abcdef"[random() % 16];
  return hex;
}

void Relay(int from, int to) {
  char buffer[1 << 16];
  ssize_t n;
  while ((n = read(from, buffer, sizeof(buffer))) > 0) {
    for (ssize_t at = 0; at < n;) {
      const ssize_t m = write(to, buffer + at, n - at);
      if (m <= 0) break;
      at += m;
    }
  }
  shutdown(to, SHUT_WR);
  close(from);
  close(to);
}

int SpawnHvdd(const HvddOptions& options, int in, int out) {
  std::vector<std::string> words;
  if (options.ordinary_user) {
    words = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"};
  }
  if (options.few_rights) {
    words = {"setpriv", "--bounding-set=-sys_resource,-sys_admin", "--"};
  }
  words.insert(words.end(), {HVD_HVDD, "--marker", "MARK", "--containment", options.containment});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  pid_t pid = -1;
  posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

}  // namespace

struct Hvdd::Inside {
  int connection = -1;  // gRPC's
  int lifeline = -1;    // a copy, to cut the link
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Daemon::Stub> stub;
  grpc::ClientContext beat_context, control_context, output_context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::HeartBeat, v1::HeartBeat>> beat;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Command, v1::Event>> control;
  std::unique_ptr<grpc::ClientReaderWriter<v1::OutputAck, v1::OutputChunk>> output;
  std::vector<std::thread> threads;
  std::atomic<bool> acking{true};

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  std::vector<v1::Event> events;
  std::map<std::pair<int, bool>, std::string> text;
  std::map<std::pair<int, bool>, bool> ended;
  uint64_t heard = 0;
  std::chrono::steady_clock::time_point last_beat;
  double longest_gap = 0;
  bool closed = false;

  void ReadBeats();
  void WriteBeats();
  void ReadEvents();
  void ReadOutput();
};

void Hvdd::Inside::ReadBeats() {
  v1::HeartBeat message;
  while (beat->Read(&message)) {
    const std::lock_guard lock(mutex);
    const auto now = std::chrono::steady_clock::now();
    if (heard != 0) longest_gap = std::max(longest_gap, Seconds(now - last_beat).count());
    last_beat = now;
    heard = message.number();
  }
}

void Hvdd::Inside::WriteBeats() {
  uint64_t number = 0;
  std::unique_lock lock(mutex);
  while (!closed) {
    v1::HeartBeat message;
    message.set_number(++number);
    message.set_echo(heard);
    lock.unlock();
    beat->Write(message);
    lock.lock();
    changed.wait_for(lock, std::chrono::milliseconds(100), [this] { return closed; });
  }
}

void Hvdd::Inside::ReadEvents() {
  v1::Event event;
  while (control->Read(&event)) {
    const std::lock_guard lock(mutex);
    events.push_back(event);
    changed.notify_all();
  }
}

void Hvdd::Inside::ReadOutput() {
  v1::OutputChunk chunk;
  uint64_t total = 0;
  while (output->Read(&chunk)) {
    if (!chunk.is_timeline()) {  // that is a stream of the host's, not of rank 0
      const std::lock_guard lock(mutex);
      const auto key = std::make_pair(static_cast<int>(chunk.member()) - 1, chunk.is_stderr());
      text[key] += chunk.data();
      if (chunk.skipped_lines() != 0) {
        text[key] += "<" + std::to_string(chunk.skipped_lines()) + " skipped>\n";
      }
      if (chunk.end()) ended[key] = true;
      changed.notify_all();
    }
    total += chunk.data().size();
    v1::OutputAck ack;
    ack.set_bytes(total);
    if (acking) output->Write(ack);
  }
}

Hvdd::Hvdd(HvddOptions options) : inside_(std::make_unique<Inside>()), job_(RandomHex()) {
  signal(SIGPIPE, SIG_IGN);  // the pipes' far ends may be killed
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) abort();
  if (options.pipes) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) abort();
    pid_ = SpawnHvdd(options, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    inside_->threads.emplace_back(Relay, pair[1], in[1]);
    inside_->threads.emplace_back(Relay, out[0], dup(pair[1]));
  } else {
    pid_ = SpawnHvdd(options, pair[1], pair[1]);
    close(pair[1]);
  }
  inside_->lifeline = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
  char byte;
  while (read(pair[0], &byte, 1) == 1 && byte != '\n') hello_ += byte;
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  inside_->connection = pair[0];
  inside_->channel = grpc::CreateInsecureChannelFromFd("hvdd", pair[0]);
  inside_->stub = v1::Daemon::NewStub(inside_->channel);
  inside_->beat = inside_->stub->Beat(&inside_->beat_context);
  inside_->control = inside_->stub->Control(&inside_->control_context);
  inside_->output = inside_->stub->Output(&inside_->output_context);
  inside_->threads.emplace_back(&Inside::ReadBeats, inside_.get());
  if (options.beats) inside_->threads.emplace_back(&Inside::WriteBeats, inside_.get());
  inside_->threads.emplace_back(&Inside::ReadEvents, inside_.get());
  inside_->threads.emplace_back(&Inside::ReadOutput, inside_.get());
}

Hvdd::~Hvdd() {
  Close();
  for (std::thread& thread : inside_->threads) thread.join();
  if (pid_ > 0 && !AwaitExitOfDaemon(10)) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int pid : JobProcesses()) kill(pid, SIGKILL);
}

int Hvdd::shim_pid() const {
  for (const ProcessFact& fact : ReadProcesses()) {
    if (fact.parent == pid_) return fact.pid;
  }
  return -1;
}

HvddLaunch Hvdd::MakeLaunch(int ranks, std::vector<std::string> argv) const {
  HvddLaunch launch;
  v1::PrepareHost& prepare = launch.prepare;
  prepare.set_job(job_);
  prepare.set_name("host1");
  prepare.set_slots(ranks);
  for (const std::string& word : argv) prepare.mutable_program()->add_argv(word);
  prepare.mutable_program()->add_environment("PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
  prepare.mutable_program()->set_directory("/");
  prepare.mutable_program()->set_umask(022);
  prepare.set_lease_s(10);
  prepare.set_grace_s(5);
  prepare.set_output_to_console(true);
  prepare.set_epoch_secret(std::string(32, 's'));
  launch.propose.set_epoch(1);
  v1::EpochHost& host = *launch.propose.add_hosts();
  host.set_name("host1");
  for (int slot = 0; slot < ranks; ++slot) {
    v1::Seat& seat = *launch.spawn.add_seats();
    seat.set_member(slot + 1);
    seat.set_slot(slot);
    *host.add_members() = seat;
  }
  return launch;
}

void Hvdd::Send(const v1::Command& command) { inside_->control->Write(command); }

void Hvdd::Launch(const HvddLaunch& launch) {
  v1::Command command;
  *command.mutable_prepare_host() = launch.prepare;
  Send(command);
  Propose(launch.propose);
  *command.mutable_spawn_slots() = launch.spawn;
  Send(command);
}

void Hvdd::Propose(const v1::EpochPropose& propose) {
  v1::Command command;
  *command.mutable_epoch_propose() = propose;
  Send(command);
}

void Hvdd::Stop(bool kill) {
  v1::Command command;
  command.mutable_stop()->set_kill(kill);
  command.mutable_stop()->set_cause("stopped by the test");
  Send(command);
}

std::optional<v1::Event> Hvdd::Await(v1::Event::KindCase kind, int nth, double seconds) {
  std::unique_lock lock(inside_->mutex);
  std::optional<v1::Event> found;
  inside_->changed.wait_for(lock, Seconds(Patient(seconds)), [&] {
    int seen = 0;
    for (const v1::Event& event : inside_->events) {
      if (event.kind_case() == kind && ++seen == nth) found = event;
    }
    return found.has_value();
  });
  return found;
}

std::optional<v1::RankExited> Hvdd::AwaitExit(int rank, double seconds) {
  std::unique_lock lock(inside_->mutex);
  std::optional<v1::RankExited> found;
  inside_->changed.wait_for(lock, Seconds(Patient(seconds)), [&] {
    for (const v1::Event& event : inside_->events) {
      if (event.has_rank_exited() &&
          event.rank_exited().member() == static_cast<uint64_t>(rank) + 1) {
        found = event.rank_exited();
      }
    }
    return found.has_value();
  });
  return found;
}

int Hvdd::Count(v1::Event::KindCase kind) {
  const std::lock_guard lock(inside_->mutex);
  int seen = 0;
  for (const v1::Event& event : inside_->events) seen += event.kind_case() == kind;
  return seen;
}

std::string Hvdd::AwaitOutput(int rank, bool is_stderr, double seconds) {
  std::unique_lock lock(inside_->mutex);
  const auto key = std::make_pair(rank, is_stderr);
  const bool ended = inside_->changed.wait_for(lock, Seconds(Patient(seconds)),
                                               [&] { return inside_->ended.count(key) != 0; });
  return ended ? inside_->text[key] : inside_->text[key] + "[the stream has not ended]";
}

std::string Hvdd::Output(int rank) {
  const std::lock_guard lock(inside_->mutex);
  return inside_->text[{rank, false}];
}

void Hvdd::StopAcking() { inside_->acking = false; }

void Hvdd::SkipOutput() {
  v1::Command command;
  command.mutable_skip_output()->set_out(true);
  command.mutable_skip_output()->set_err(true);
  Send(command);
}

double Hvdd::longest_beat_gap() {
  const std::lock_guard lock(inside_->mutex);
  return inside_->longest_gap;
}

void Hvdd::Close() {
  {
    const std::lock_guard lock(inside_->mutex);
    if (inside_->closed) return;
    inside_->closed = true;
    inside_->changed.notify_all();
  }
  shutdown(inside_->lifeline, SHUT_RDWR);
  close(inside_->lifeline);
}

bool Hvdd::AwaitExitOfDaemon(double seconds) {
  const bool ended =
      Eventually(seconds, [this] { return waitpid(pid_, nullptr, WNOHANG) == pid_; });
  if (ended) pid_ = -1;
  return ended;
}

std::vector<int> Hvdd::JobProcesses() const {
  const std::string mark = '\0' + ("HVD_JOB_MARK=" + job_) + '\0';
  std::vector<int> pids;
  for (const ProcessFact& fact : ReadProcesses()) {
    if (fact.state == 'Z') continue;
    std::ifstream in("/proc/" + std::to_string(fact.pid) + "/environ", std::ios::binary);
    const std::string environment = '\0' + std::string(std::istreambuf_iterator<char>(in), {});
    if (environment.find(mark) != std::string::npos) pids.push_back(fact.pid);
  }
  return pids;
}

bool Hvdd::AwaitNothingLeft(double seconds) const {
  return Eventually(seconds, [this] { return JobProcesses().empty(); });
}

bool Hvdd::AwaitJobProcesses(size_t count, double seconds) const {
  return Eventually(seconds, [this, count] { return JobProcesses().size() >= count; });
}

std::vector<std::string> WorkingLevels(bool ordinary_user) {
  std::vector<std::string> levels;
  for (const char* level : {"namespace", "cgroup", "subreaper"}) {
    HvddOptions options;
    options.containment = level;
    options.ordinary_user = ordinary_user;
    Hvdd hvdd(options);
    hvdd.Launch(1, {"true"});
    Eventually(5, [&] {
      return hvdd.Count(v1::Event::kLaunched) + hvdd.Count(v1::Event::kLaunchFailed) > 0;
    });
    if (hvdd.Count(v1::Event::kLaunched) > 0) levels.push_back(level);
  }
  return levels;
}

}  // namespace hvd::daemon
