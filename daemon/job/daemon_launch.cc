// SPDX-License-Identifier: Apache-2.0
// The part of Daemon that prepares the host for a job, hears of its epochs and spawns its slots.
#include <fcntl.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file_limit.h"
#include "daemon/job/daemon.h"
#include "daemon/shim/exec_failure.h"
#include "placement/nvml.h"
#include "proto/exit_code.h"
#include "proto/hello.h"
#include "proto/open_files.h"

namespace hvd {
namespace {

constexpr double kDefaultLease = 10;
constexpr Clock::duration kTellAwaitedAfter = std::chrono::seconds(15);

HostFacts ReadHostFacts(bool with_gpus) {
  HostFacts facts;
  for (char** entry = environ; *entry != nullptr; ++entry) facts.environment.push_back(*entry);
  HostDevices& devices = facts.devices;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &cores)) devices.cores.push_back(core);
    }
  }
  devices.mask = InheritedMask(facts.environment);
  // Whichever variable it came from, this is the one that CUDA knows.
  if (devices.mask.has_value()) {
    facts.environment.push_back(absl::StrCat("CUDA_VISIBLE_DEVICES=", *devices.mask));
  }
  if (!with_gpus) return facts;
  CardSearch search = FindCards();
  devices.gpus = VisibleGpus(search.cards, devices.mask);
  devices.no_gpus = std::move(search.problem);
  return facts;
}

// errno says why.
absl::Status Failed(absl::string_view what) {
  const int error = errno;
  const std::string most =
      error == EMFILE ? absl::StrCat(" (hvdd may have ", MostFiles(), ")") : "";
  return absl::ResourceExhaustedError(
      absl::StrCat("hvdd cannot get ", what, ": ", strerrordesc_np(error), most, RemedyFor(error)));
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
    return Failed("a rank's socket");
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

void Daemon::Prepare(const v1::PrepareHost& prepare) {
  if (prepared_.has_value()) {
    return FailLaunch(kExitLauncher, "this daemon has launched its job already");
  }
  if (!no_shim_.ok()) return FailLaunch(kExitLauncher, std::string(no_shim_.message()));
  const absl::Status fine = CheckPrepare(prepare);
  if (!fine.ok()) return FailLaunch(kExitLauncher, std::string(fine.message()));
  facts_ = ReadHostFacts(!prepare.has_gpus_per_rank() || prepare.gpus_per_rank() > 0);
  absl::StatusOr<HostPlan> shares = PlanShares(prepare, facts_.devices);
  if (!shares.ok()) return FailLaunch(kExitLauncher, std::string(shares.status().message()));
  shares_ = *std::move(shares);
  prepared_ = prepare;
  slots_ = prepare.elastic() ? kMaxLocalRanks : static_cast<int>(prepare.slots());
  table_.emplace(slots_);
  ended_.assign(slots_, TimePoint());
  oom_.emplace();
  grace_ = std::chrono::duration<double>(prepare.grace_s());
  const double lease = prepare.lease_s() > 0 ? prepare.lease_s() : kDefaultLease;
  BeginLease(std::chrono::duration<double>(lease));
  StartRelay();  // before the links: they use its queue
  StartLinks();
}

void Daemon::Propose(const v1::EpochPropose& propose) {
  if (!prepared_.has_value()) return;  // why has been told
  absl::StatusOr<EpochPlan> plan = PlanEpoch(propose, *prepared_);
  if (!plan.ok()) return FailLaunch(kExitLauncher, std::string(plan.status().message()));
  if (plan->host < 0) return;
  if (elastic()) {
    for (size_t local_rank = 0; local_rank < plan->slots.size(); ++local_rank) {
      relay_->Renumber(plan->slots[local_rank], plan->RankOf(static_cast<int>(local_rank)));
    }
    return links_->Propose(*std::move(plan));
  }
  plan_ = *std::move(plan);
  links_->Propose(*plan_);
}

bool Daemon::MayTake(const v1::Seat& seat) const {
  if (seat.slot() >= static_cast<uint32_t>(slots_.load())) return false;
  const int slot = static_cast<int>(seat.slot());
  const bool free = members_[slot] == 0 || (elastic() && table_->told(slot));
  return free && plan_.has_value() && plan_->LocalRankOf(slot) >= 0 &&
         (!elastic() || seat.share() < shares_.slots.size());
}

// Elastic: those that can have the slot and the share that they are to have. The others end here:
// no table holds them.
v1::SpawnSlots Daemon::Seatable(const v1::SpawnSlots& spawn, const absl::Status& placed) {
  v1::SpawnSlots seatable = spawn;
  seatable.clear_seats();
  std::set<uint32_t> taken;
  for (const v1::Seat& seat : spawn.seats()) {
    if (MayTake(seat) && taken.insert(seat.slot()).second) {
      *seatable.add_seats() = seat;
    } else {
      RefuseSeat(seat, placed);
    }
  }
  return seatable;
}

void Daemon::RefuseSeat(const v1::Seat& seat, const absl::Status& placed) {
  v1::Event died;
  died.mutable_member_died()->set_member(seat.member());
  died.mutable_member_died()->set_exit_code(kExitLauncher);
  Emit(std::move(died));
  v1::Event exited;
  v1::RankExited& end = *exited.mutable_rank_exited();
  end.set_member(seat.member());
  end.set_exit_code(kExitLauncher);
  end.set_exec_error(absl::StrCat(prepared_->name(), ": slot ", seat.slot(), " and share ",
                                  seat.share(), " are no free place for member ", seat.member(),
                                  placed.ok() ? "" : ": ", placed.message()));
  Emit(std::move(exited));
}

// Elastic: plans the world with these members, and the shares into which the host is divided from
// now on. Members that run keep what they have.
absl::Status Daemon::PlaceNewMembers(const v1::SpawnSlots& spawn) {
  absl::StatusOr<EpochPlan> plan = PlanEpoch(spawn.expected(), *prepared_);
  if (!plan.ok()) return plan.status();
  if (plan->host < 0) return absl::InvalidArgumentError("the world that is told is without it");
  plan_ = *std::move(plan);
  if (spawn.shares() == 0 || spawn.shares() == shares_.slots.size()) return absl::OkStatus();
  v1::PrepareHost divided = *prepared_;
  divided.set_slots(spawn.shares());
  absl::Status fine = CheckPrepare(divided);
  if (!fine.ok()) return fine;
  absl::StatusOr<HostPlan> shares = PlanShares(divided, facts_.devices);
  if (!shares.ok()) return shares.status();
  shares_ = *std::move(shares);
  prepared_->set_slots(spawn.shares());
  return absl::OkStatus();
}

// In an elastic job it may have been another's.
void Daemon::TakeSlot(const v1::Seat& seat) {
  const int slot = static_cast<int>(seat.slot());
  if (members_[slot] != 0) {
    table_->Reset(slot);
    ended_[slot] = TimePoint();
  }
  members_[slot] = seat.member();
  relay_->Begin(slot, seat.member());
}

// All in one turn of the loop: nobody's end is heard before all have been started.
void Daemon::Spawn(const v1::SpawnSlots& asked) {
  if (!prepared_.has_value()) return;
  const absl::Status placed = elastic() ? PlaceNewMembers(asked) : absl::OkStatus();
  const v1::SpawnSlots spawn = elastic() ? Seatable(asked, placed) : asked;
  for (const v1::Seat& seat : spawn.seats()) {
    if (MayTake(seat)) continue;
    return FailLaunch(kExitLauncher, absl::StrCat(prepared_->name(), ": slot ", seat.slot(),
                                                  " is no free place for member ", seat.member(),
                                                  " of an epoch that has been proposed"));
  }
  for (const v1::Seat& seat : spawn.seats()) TakeSlot(seat);
  links_->Expect(spawn);
  spawned_ += spawn.seats_size();
  if (!placed.ok()) return NeverStartFrom(spawn, 0, std::string(placed.message()));
  if (shim_lost_ || stop_.has_value()) {
    return NeverStartFrom(spawn, 0, "the job is being stopped");
  }
  if (!std::exchange(launched_told_, true)) {
    TellLaunched();
    WarnOfLimits();
    if (!shares_.note.empty()) Notify(shares_.note);
  }
  for (int i = 0; i < spawn.seats_size(); ++i) {
    absl::Status started = StartRank(spawn.seats(i));
    if (started.ok()) continue;
    const std::string why(started.message());
    if (elastic()) {
      NeverStart(spawn.seats(i), why);
      continue;
    }
    NeverStartFrom(spawn, i, why);
    FailLaunch(kExitLauncher, absl::StrCat(prepared_->name(), ": ", why));
    return BeginStop(true, why);
  }
  if (prepared_->adoption_key().empty()) return;
  loop_.At(Clock::now() + kTellAwaitedAfter, [this] { TellAwaited(); });
}

void Daemon::NeverStart(const v1::Seat& seat, const std::string& why) {
  const int slot = static_cast<int>(seat.slot());
  table_->NeverStarted(slot, kExitLauncher, why);
  OnEnded({.slot = slot, .status = W_EXITCODE(kExitLauncher, 0), .never_started = true});
}

// The table must close: those that were never asked for end here.
void Daemon::NeverStartFrom(const v1::SpawnSlots& spawn, int first, const std::string& why) {
  for (int i = first; i < spawn.seats_size(); ++i) NeverStart(spawn.seats(i), why);
}

void Daemon::StartLinks() {
  LinkServerOptions options;
  options.host_name = prepared_->name();
  options.slots = slots_;
  options.elastic = prepared_->elastic();
  options.job = prepared_->job();
  options.epoch_secret = prepared_->epoch_secret();
  const int listener = supervisor_->shim().listener.get();
  if (listener >= 0) options.listener.Reset(fcntl(listener, F_DUPFD_CLOEXEC, 3));
  options.on_event = [this](v1::Event event) { Emit(std::move(event)); };
  options.store = &store_;
  options.timeline = prepared_->timeline();
  options.stall = {prepared_->stall_warn_s(), prepared_->stall_abort_s()};
  const int stream = OutputQueue::TimelineStream(slots_);
  options.trace.room = [this, stream] { return output_.Room(stream); };
  options.trace.on_trace = [this, stream](const std::string& frames) {
    output_.Push(stream, frames);
  };
  options.trace.on_off = [this, stream] { output_.EndRecording(stream); };
  options.trace.on_end = [this, stream] { output_.PushEnd(stream); };
  links_ = std::make_unique<LinkServer>(std::move(options));
}

void Daemon::StartRelay() {
  RelayOptions options;
  options.slots = slots_;
  options.elastic = prepared_->elastic();
  options.to_console = prepared_->output_to_console();
  options.directory = prepared_->output_directory();
  options.on_drained = [this](int slot, std::vector<std::string> lines) {
    loop_.Post([this, slot, lines = std::move(lines)] {
      table_->Drained(slot, lines);
      TellEnd(slot);
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

absl::Status Daemon::StartRank(const v1::Seat& seat) {
  const int slot = static_cast<int>(seat.slot());
  RankPipes pipes;
  absl::Status made = MakePipes(seat.stdin(), &pipes);
  if (!made.ok()) return made;
  absl::StatusOr<std::string> token = MakeToken();
  if (!token.ok()) return token.status();
  LinkName name;
  name.fd = kDoorFd;
  name.inode = InodeOf(pipes.door_there.get());
  name.token = *token;
  name.path = supervisor_->shim().way_back;
  SlotLink place;
  place.slot = slot;
  place.share = elastic() ? static_cast<int>(seat.share()) : slot;
  if (elastic()) place.member = seat.member();
  place.link = FormatLinkName(name);
  place.door_fd = kDoorFd;
  const Descriptor order = OrderToFd(OrderFor(place, {*prepared_, *plan_, facts_, shares_}));
  if (!order.valid()) return Failed("a memfd for a rank's environment");
  links_->AddDoor(slot, std::move(pipes.door_here), *std::move(token));
  // A worker that comes after the first epoch may follow one of its rank that was on another host.
  relay_->Adopt(slot,
                {plan_->RankOf(plan_->LocalRankOf(slot)), std::move(pipes.in.write_end),
                 std::move(pipes.out.read_end), std::move(pipes.err.read_end), plan_->epoch > 1});
  empty_ = false;
  supervisor_->Spawn(slot, {order.get(), pipes.in.read_end.get(), pipes.out.write_end.get(),
                            pipes.err.write_end.get(), pipes.door_there.get()});
  return absl::OkStatus();
}

// Says which ranks another launcher has started that have not called init.
void Daemon::TellAwaited() {
  std::string ranks;
  for (int slot = 0; slot < slots_; ++slot) {
    if (vacant(slot) || table_->started(slot)) continue;
    absl::StrAppend(&ranks, ranks.empty() ? "" : ", ", plan_->RankOf(plan_->LocalRankOf(slot)));
  }
  if (ranks.empty() || stop_.has_value()) return;
  Notify(absl::StrCat("waits for hvd's init of rank ", ranks, ", for ",
                      prepared_->claim_patience_s(), " s at most"));
}

void Daemon::TellLaunched() {
  v1::Event event;
  v1::Launched& launched = *event.mutable_launched();
  launched.set_containment(static_cast<v1::Containment>(supervisor_->level()));
  for (const Gpu& gpu : facts_.devices.gpus) launched.add_gpu_uuids(gpu.uuid);
  TellShares(shares_, &launched);
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  launched.set_host_name(name);
  launched.set_pid(getpid());
  Emit(std::move(event));
}

void Daemon::WarnOfLimits() {
  for (const v1::Limit& limit : prepared_->program().limits()) {
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
  // Adopted ranks are held together by what their launcher has.
  if (supervisor_->level() != ContainmentLevel::kNamespace && prepared_->adoption_key().empty()) {
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
