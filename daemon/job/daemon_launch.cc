// The part of Daemon that carries out a Launch.
#include <fcntl.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/job/daemon.h"
#include "daemon/job/nvml.h"
#include "daemon/shim/exec_failure.h"
#include "proto/exit_code.h"
#include "proto/hello.h"

namespace hvd {
namespace {

// Out of the way of what shells and make use.
constexpr int kDoorFd = 197;
constexpr double kDefaultLease = 10;

HostFacts ReadHostFacts() {
  HostFacts facts;
  for (char** entry = environ; *entry != nullptr; ++entry) facts.environment.push_back(*entry);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &cores)) facts.cores.push_back(core);
    }
  }
  facts.gpu_uuids = VisibleGpus(FindGpus(), getenv("CUDA_VISIBLE_DEVICES"));
  return facts;
}

absl::Status Failed(absl::string_view what) {
  return absl::ResourceExhaustedError(
      absl::StrCat(what, ": ", strerrordesc_np(errno), RemedyFor(errno)));
}

struct Pipe {
  Descriptor read_end, write_end;
};

bool MakePipe(Pipe* pipe) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe->read_end.Reset(ends[0]);
  pipe->write_end.Reset(ends[1]);
  return true;
}

// A rank's descriptors, both sides.
struct RankPipes {
  Pipe in, out, err;
  Descriptor door_here, door_there;
  bool feeds = false;
};

absl::Status MakePipes(bool feeds, RankPipes* pipes) {
  pipes->feeds = feeds;
  if (!MakePipe(&pipes->out) || !MakePipe(&pipes->err)) return Failed("pipes for a rank's output");
  if (feeds) {
    if (!MakePipe(&pipes->in)) return Failed("a pipe for a rank's stdin");
    fcntl(pipes->in.write_end.get(), F_SETFL, O_NONBLOCK);
  } else {
    pipes->in.read_end.Reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Failed("the door of a rank");
  }
  pipes->door_here.Reset(ends[0]);
  pipes->door_there.Reset(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeToken() {
  std::array<char, 16> random;
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return Failed("randomness for a rank's token");
  }
  return absl::BytesToHexString(absl::string_view(random.data(), random.size()));
}

uint64_t InodeOf(int fd) {
  struct stat about {};
  fstat(fd, &about);
  return about.st_ino;
}

}  // namespace

void Daemon::Launch(const v1::Launch& launch) {
  if (plan_.has_value())
    return FailLaunch(kExitLauncher, "this daemon has launched its job already");
  if (!no_shim_.ok()) return FailLaunch(kExitLauncher, std::string(no_shim_.message()));
  absl::StatusOr<LaunchPlan> plan = PlanLaunch(launch);
  if (!plan.ok()) return FailLaunch(kExitLauncher, std::string(plan.status().message()));
  job_ = launch.job();
  plan_ = *std::move(plan);
  first_rank_ = plan_->first_rank;
  local_size_ = plan_->local_size;
  table_.emplace(plan_->local_size);
  ended_.assign(plan_->local_size, TimePoint());
  oom_.emplace();
  grace_ = std::chrono::duration<double>(launch.grace_s());
  const double lease = launch.lease_s() > 0 ? launch.lease_s() : kDefaultLease;
  BeginLease(std::chrono::duration<double>(lease));
  StartRelay(launch);  // before the links: they use its queue
  StartLinks(launch);
  const absl::Status started = StartRanks(launch);
  if (!started.ok()) {
    FailLaunch(kExitLauncher, absl::StrCat(plan_->host_name, ": ", started.message()));
    BeginStop(true, std::string(started.message()));
  }
}

void Daemon::StartLinks(const v1::Launch& launch) {
  LinkServerOptions options;
  options.hosts = plan_->topology.hosts();
  options.host_index = plan_->host_index;
  options.first_rank = plan_->first_rank;
  options.local_size = plan_->local_size;
  options.job = launch.job();
  options.epoch_secret = launch.epoch_secret();
  const int listener = supervisor_->shim().listener.get();
  if (listener >= 0) options.listener.Reset(fcntl(listener, F_DUPFD_CLOEXEC, 3));
  options.on_event = [this](v1::Event event) { Emit(std::move(event)); };
  options.store = &store_;
  options.timeline = launch.timeline();
  options.stall = {launch.stall_warn_s(), launch.stall_abort_s()};
  const int stream = OutputQueue::TimelineStream(plan_->local_size);
  options.trace_room = [this, stream] { return output_.Room(stream); };
  options.on_trace = [this, stream](const std::string& frames) { output_.Push(stream, frames); };
  options.on_trace_off = [this, stream] { output_.EndRecording(stream); };
  options.on_trace_end = [this, stream] { output_.PushEnd(stream); };
  links_ = std::make_unique<LinkServer>(std::move(options));
}

void Daemon::StartRelay(const v1::Launch& launch) {
  RelayOptions options;
  options.first_rank = plan_->first_rank;
  options.local_size = plan_->local_size;
  options.to_console = launch.output_to_console();
  options.directory = launch.output_directory();
  options.on_drained = [this](int rank, std::vector<std::string> lines) {
    loop_.Post([this, rank, lines = std::move(lines)] {
      table_->Drained(rank, lines);
      TellEnd(rank);
    });
  };
  options.on_stdin_credit = [this](uint64_t bytes) {
    v1::Event event;
    event.mutable_stdin_credit()->set_bytes(bytes);
    Emit(std::move(event));
  };
  options.on_files_ended = [this] { loop_.Post([this] { MaybeFinish(); }); };
  options.on_notice = [this](std::string text) { Notify(std::move(text)); };
  relay_ = std::make_unique<Relay>(std::move(options), &output_);
}

absl::Status Daemon::StartRanks(const v1::Launch& launch) {
  const HostFacts facts = ReadHostFacts();
  TellLaunched(facts);
  WarnOfLimits(launch);
  for (int rank = 0; rank < plan_->local_size; ++rank) {
    absl::Status started = StartRank(rank, {launch, *plan_, facts});
    if (started.ok()) continue;
    // The table must close: those that were never asked for end here.
    for (int never = rank; never < plan_->local_size; ++never) {
      table_->NeverStarted(never, kExitLauncher, std::string(started.message()));
      OnEnded({.rank = never, .never_started = true});
    }
    return started;
  }
  return absl::OkStatus();
}

absl::Status Daemon::StartRank(int local_rank, const LaunchContext& context) {
  RankPipes pipes;
  absl::Status made = MakePipes(plan_->Feeds(local_rank), &pipes);
  if (!made.ok()) return made;
  absl::StatusOr<std::string> token = MakeToken();
  if (!token.ok()) return token.status();
  LinkName name;
  name.fd = kDoorFd;
  name.inode = InodeOf(pipes.door_there.get());
  name.token = *token;
  name.path = supervisor_->shim().way_back;
  const Descriptor order =
      OrderToFd(OrderFor({local_rank, FormatLinkName(name), kDoorFd}, context));
  if (!order.valid()) return Failed("a memfd for a rank's environment");
  links_->AddDoor(local_rank, std::move(pipes.door_here), *std::move(token));
  relay_->Adopt(local_rank, std::move(pipes.in.write_end), std::move(pipes.out.read_end),
                std::move(pipes.err.read_end));
  empty_ = false;
  supervisor_->Spawn(local_rank, {order.get(), pipes.in.read_end.get(), pipes.out.write_end.get(),
                                  pipes.err.write_end.get(), pipes.door_there.get()});
  return absl::OkStatus();
}

void Daemon::TellLaunched(const HostFacts& facts) {
  v1::Event event;
  v1::Launched& launched = *event.mutable_launched();
  launched.set_containment(static_cast<v1::Containment>(supervisor_->level()));
  for (const std::string& uuid : facts.gpu_uuids) launched.add_gpu_uuids(uuid);
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  launched.set_host_name(name);
  launched.set_pid(getpid());
  Emit(std::move(event));
}

void Daemon::WarnOfLimits(const v1::Launch& launch) {
  for (const v1::Limit& limit : launch.program().limits()) {
    rlimit here{};
    if (limit.resource() != RLIMIT_MEMLOCK || getrlimit(RLIMIT_MEMLOCK, &here) != 0) continue;
    if (limit.soft() <= here.rlim_max) continue;
    Notify(absl::StrCat("the hard limit of locked memory (", here.rlim_max,
                        " bytes) is below the launcher's; raise memlock there for RDMA"));
  }
  if (!supervisor_->shim().listener.valid()) {
    Notify(
        "no directory for hvdd's socket can be written to ($TMPDIR, /tmp, /dev/shm, /var/tmp): a "
        "rank that starts hvd in a process of its own making may not find its job");
  }
  const std::string& why = supervisor_->shim().weaker_why;
  if (supervisor_->level() != ContainmentLevel::kNamespace) {
    Notify(absl::StrCat(
        "containment by ", LevelName(supervisor_->level()), " only, ",
        why.empty() ? "as --containment says"
                    : absl::StrCat("because stronger ones fail (", why, ")"),
        ": should hvdd and its shim both be killed at once, the ranks there would live on"));
  }
}

void Daemon::FailLaunch(int exit_code, const std::string& message) {
  v1::Event event;
  event.mutable_launch_failed()->set_exit_code(exit_code);
  event.mutable_launch_failed()->set_message(message);
  Emit(std::move(event));
}

}  // namespace hvd
