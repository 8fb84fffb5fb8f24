// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/process/process.h"

#include <pthread.h>

#include <exception>
#include <new>
#include <utility>

#include "runtime/api/process/own_path.h"
#include "runtime/api/process/transports.h"
#include "runtime/collective/kernels/float_rules.h"
#include "runtime/engine/tuning/config.h"
#include "runtime/errors/errors.h"

namespace hvd::rt {
namespace {

constexpr char kForked[] =
    "this process was forked from one that has used hvd; start it with exec instead";
Process* the_process = nullptr;  // for the child of a fork, where Get's static may be locked

void* AllocateOnGpu(int device, size_t bytes) {
  const auto memory = Process::Get().devices().gpus().Allocate(device, bytes);
  return memory.ok() ? *memory : nullptr;
}

void FreeOnGpu(void* memory) {
  if (memory != nullptr) (void)Process::Get().devices().gpus().Free(memory).ok();
}

// Whose end, or whose doing, the abort is that this process has heard of.
Culprit CulpritOfEpoch() {
  const std::shared_ptr<Engine> engine = Process::Get().engine();
  if (engine == nullptr) return {};
  const int rank = CauseOf(*engine->world().page()).rank;
  const Topology& topology = engine->world().topology();
  if (rank < 0 || rank >= topology.size()) return {};
  return {rank, topology.hosts()[topology.place(rank).host].name};
}

// The program may have set it itself, where hvdrun could not see it. Errors are told by hvdrun.
void BeginTimelineOf(const EngineConfig& config, const EpochWorld& world, JobLink* link) {
  if (!link->is_open() || world.rank() != 0) return;
  if (config.timeline.empty() || config.timeline == "DYNAMIC") return;
  if (world.page()->tracing.load() == 0) (void)link->AskTimeline(config.timeline).ok();
}

}  // namespace

Process::Process() : devices_({&sets_, &arena_, AllocateOnGpu, FreeOnGpu}) {
  the_process = this;
  FindCulpritsBy(CulpritOfEpoch);
  pthread_atfork(nullptr, nullptr, [] {
    NoteForkedChild();
    the_process->arena_.DetachChild();
  });
}

// Never destroyed: threads of the program may still be inside a call when static objects go.
Process& Process::Get() {
  static Process* process = new Process;
  return *process;
}

absl::StatusOr<Store*> Process::store() {
  if (absl::Status adopted = origin_.Adopt(); !adopted.ok()) return adopted;
  return store_.Find(origin_.environment());
}

absl::Status Process::Init(const StaticSets& sets) {
  if (forked()) return absl::FailedPreconditionError(kForked);
  const MutexLock lock(&life_mutex_);
  const bool is_in = engine() != nullptr;
  if (is_in && epoch().is_over == 0) return absl::OkStatus();
  if (is_in) ShutdownLocked();
  return JoinNext(sets);
}

absl::Status Process::Reset(const StaticSets& sets) {
  if (forked()) return absl::FailedPreconditionError(kForked);
  const MutexLock lock(&life_mutex_);
  ShutdownLocked();
  return JoinNext(sets);
}

// In an elastic job an epoch that is over before it has begun is followed by another: hvdrun bounds
// how many, and for how long, and then refuses.
absl::Status Process::JoinNext(const StaticSets& sets) {
  absl::Status status = InitCaught(sets);
  while (!status.ok() && joining_ && link_.CanAskAgain()) {
    joining_ = false;
    status = InitCaught(sets);
  }
  // The others know of what they have broken, and of this member's removal.
  const bool known = absl::IsAborted(status) || absl::IsCancelled(status);
  if (!status.ok() && !known) {
    link_.TellInitFailed(std::string(status.message()), origin_.environment());
  }
  if (!status.ok() && joining_) link_.DropUnlessRefused();
  joining_ = false;
  return status;
}

absl::Status Process::OpenLink(const LinkName& link) {
  if (absl::Status opened = link_.Open(link); !opened.ok()) return opened;
  is_elastic_.store(link_.is_elastic() ? 1 : 0);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<EpochWorld>> Process::JoinEpoch(const EngineConfig& config,
                                                               const StaticSets& sets,
                                                               std::unique_ptr<Tuner>* tuner) {
  JoinOptions options;
  options.on_start = [&](const Topology& topology, int rank) {
    auto made = Tuner::Make({rank, topology.hosts().size() > 1}, config);
    if (made.ok()) *tuner = std::move(*made);
    return made.status();
  };
  options.host_cores = config.host_cores;
  options.make_transport = TransportsFor(config);
  options.arena = &arena_;
  options.terms = config.terms;
  options.max_pending = config.max_pending;
  options.terms.push_back(ProcessSetsTerm(sets));
  return EpochWorld::Join(link_.session(), options);
}

// The others wait in the epoch that was joined: they must hear of what is thrown, too.
absl::Status Process::InitCaught(const StaticSets& sets) {
  try {
    return InitLocked(sets);
  } catch (const std::bad_alloc&) {
    return absl::InternalError("out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

// Looks at what can be wrong about this rank alone before it joins: failing later, it would leave
// the others behind in an epoch that it is no part of.
absl::Status Process::InitLocked(const StaticSets& sets) {
  const FloatRules inherited;  // by the threads that the transport makes
  if (absl::Status adopted = origin_.Adopt(); !adopted.ok()) return adopted;
  const absl::StatusOr<EngineConfig> config = ReadConfig(origin_.environment());
  if (!config.ok()) return config.status();
  std::unique_ptr<Tuner> tuner;
  if (config->link) {
    if (absl::Status opened = OpenLink(*config->link); !opened.ok()) return opened;
  } else {
    auto made = Tuner::Make({}, *config);
    if (!made.ok()) return made.status();
    tuner = std::move(*made);
  }
  joining_ = true;
  auto world = config->link ? JoinEpoch(*config, sets, &tuner)
                            : EpochWorld::Alone({.max_pending = config->max_pending});
  if (!world.ok()) return world.status();
  if ((*world)->rank() == 0) SaySettings(*config);
  Begin(*config, *std::move(world), std::move(tuner));
  return absl::OkStatus();
}

void Process::Begin(const EngineConfig& config, std::unique_ptr<EpochWorld> world,
                    std::unique_ptr<Tuner> tuner) {
  devices_.BeginEpoch(config, OwnPath());
  EpochState state = past_.Describe(
      {link_.is_open() ? world->epoch() : 0, world->rank(), world->topology().size()},
      link_.is_elastic() ? &world->state_words() : nullptr);
  if (link_.is_elastic()) state.files = world->TakeStateFiles();
  const hvd_epoch_t epoch = state.epoch;
  state_home_.BeginEpoch(std::move(state));
  SetDevice device = devices_.MakeWork(config, world.get());
  EngineHelpers helpers = {.tuner = std::move(tuner), .device = std::move(device.work)};
  auto engine =
      joined_.Share(std::make_unique<Engine>(std::move(world), config, std::move(helpers)));
  BeginTimelineOf(config, engine->world(), &link_);
  sets_.Start({engine, device.route}, config,
              [this, config](EpochWorld* set) { return devices_.MakeWork(config, set); });
  static_sets_added_ = false;
  past_.NoteBegun();
  share_.store(link_.share());
  joined_.Begin(std::move(engine), epoch);
}

absl::StatusOr<bool> Process::IsElastic() {
  if (is_elastic_.load() < 0 && !forked()) {
    const MutexLock lock(&life_mutex_);
    if (absl::Status adopted = origin_.Adopt(); !adopted.ok()) return adopted;
    const auto link = ReadLink(origin_.environment());
    if (!link.ok()) return link.status();
    if (!link->has_value()) {
      is_elastic_.store(0);
    } else if (absl::Status opened = OpenLink(**link); !opened.ok()) {
      return opened;
    }
  }
  return is_elastic_.load() == 1;
}

absl::Status Process::AskTimeline(const std::string& path) {
  const MutexLock lock(&life_mutex_);
  return link_.AskTimeline(path);
}

absl::Status Process::AskGrace(uint64_t milliseconds) {
  const MutexLock lock(&life_mutex_);
  return link_.AskGrace(milliseconds);
}

absl::Status Process::AddStaticSets(const StaticSets& sets) {
  const MutexLock lock(&life_mutex_);
  if (static_sets_added_ || engine() == nullptr) return absl::OkStatus();
  for (const std::vector<int32_t>& ranks : sets) {
    int32_t id = 0;
    absl::Status added = sets_.Add(ranks, &id);
    if (added.ok()) continue;
    ShutdownLocked();  // hvd_init has failed; others that wait for this rank are told that it left
    return added;
  }
  static_sets_added_ = true;
  return absl::OkStatus();
}

absl::Status Process::Shutdown() {
  if (forked()) return absl::OkStatus();
  const MutexLock lock(&life_mutex_);
  ShutdownLocked();
  return absl::OkStatus();
}

void Process::ShutdownLocked() {
  std::shared_ptr<Engine> engine = this->engine();
  if (engine == nullptr) return;
  past_.NoteEnded(engine->world().page()->aborted.load() != 0);
  // Other threads still see the engine until all their requests are done.
  sets_.Stop();
  devices_.EndCalls();
  handles_.DropDone();  // so that they let go of the GPUs; some are done only now
  joined_.End();
  const uint64_t epoch = engine->world().epoch();
  engine.reset();
  devices_.EndEpoch();
  // Once others hear that this rank has left, nothing here may write into what all of them see.
  state_home_.EndEpoch();
  if (link_.is_elastic()) joined_.AwaitEnginesEnd();
  link_.Leave(epoch);
}

}  // namespace hvd::rt
