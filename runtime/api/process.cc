// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/process.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "proto/hmac_sha256.h"
#include "runtime/adoption/ancestor.h"
#include "runtime/api/own_path.h"
#include "runtime/collective/kernels/float_rules.h"
#include "runtime/device/nccl/nccl_way.h"
#include "runtime/engine/tuning/config.h"
#include "runtime/errors/errors.h"
#include "runtime/gpu/found.h"
#include "runtime/session/linked_store.h"
#include "runtime/session/local_store.h"
#include "runtime/transport/tcp/tcp_transport.h"
#include "runtime/transport/transport_choice.h"
#include "runtime/transport/ucx/ucx_transport.h"

namespace hvd {
namespace {

constexpr char kForked[] =
    "this process was forked from one that has used hvd; start it with exec instead";
Process* the_process = nullptr;  // for the child of a fork, where Get's static may be locked

absl::StatusOr<std::unique_ptr<Transport>> MakeTransport(const EngineConfig& config,
                                                         const TransportPlace& place) {
  const std::vector<std::string> ports = ListRdmaPorts();
  // UCX is not even looked for where nothing could need it.
  const bool has_ucx = config.transport.empty() && !ports.empty() && !UcxVersion().empty();
  const TransportChoice choice =
      ChooseTransport({config.transport, config.net_devices}, {{}, ports}, has_ucx);
  if (place.rank == 0 && config.log_level <= LogLevel::kInfo) {
    fprintf(stderr, "hvd: transport between hosts: %s (%s)\n", choice.kind.c_str(),
            choice.reason.c_str());
  }
  if (choice.kind == "tcp") {
    return MakeTcpTransport({.secret = place.token,
                             .rank = place.rank,
                             .size = place.size,
                             .net_devices = config.net_devices,
                             .reached_at = config.reached_at,
                             .reached_from = config.reached_from});
  }
  UcxOptions options;
  // UCX sends it in the clear, so it must not be the secret.
  const Sha256Digest token = HmacSha256(place.token, "hvd ucx: the token of messages");
  std::memcpy(&options.token, token.data(), sizeof(options.token));
  options.rank = place.rank;
  options.size = place.size;
  options.net_devices = config.net_devices;
  options.tls = config.tls;
  options.log_level = config.ucx_log_level;
  return MakeUcxTransport(options);
}

void* AllocateOnGpu(int device, size_t bytes) {
  const auto memory = Process::Get().gpus().Allocate(device, bytes);
  return memory.ok() ? *memory : nullptr;
}

void FreeOnGpu(void* memory) {
  if (memory != nullptr) (void)Process::Get().gpus().Free(memory).ok();
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

TransportFactory FactoryFor(const EngineConfig& config) {
  return [config](const TransportPlace& place) { return MakeTransport(config, place); };
}

}  // namespace

Process::Process() {
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

std::shared_ptr<Engine> Process::engine() const {
  if (forked()) return nullptr;
  const MutexLock lock(&engine_mutex_);
  return engine_;
}

// Tries only once: the launcher's other processes have gone on by the time of another try.
absl::Status Process::Adopt() {
  const MutexLock lock(&adoption_mutex_);
  if (std::exchange(adoption_tried_, true)) return adoption_status_;
  const std::vector<std::string> environment = ReadEnvironment();
  auto place = FindForeignPlace([](const char* name) { return getenv(name); }, FindAncestor);
  adoption_status_ = place.status();
  if (!place.ok() || !place->has_value()) return adoption_status_;
  auto adopted = Adopted::Join(**place, {OwnPath(), environment});
  adoption_status_ = adopted.status();
  if (!adopted.ok()) return adoption_status_;
  adopted_ = *std::move(adopted);
  // How a process ends is its launcher's to know; hvd's daemon hears it from the process itself.
  on_exit([](int code, void* left) { static_cast<Adopted*>(left)->Leave(code); }, adopted_.get());
  return absl::OkStatus();
}

const std::vector<std::string>& Process::adopted_environment() const {
  static const std::vector<std::string> none;
  return adopted_ != nullptr ? adopted_->environment() : none;
}

absl::StatusOr<Store*> Process::store() {
  if (absl::Status adopted = Adopt(); !adopted.ok()) return adopted;
  const MutexLock lock(&store_mutex_);
  if (store_ != nullptr) return store_.get();
  auto link = ReadLink(adopted_environment());
  if (!link.ok()) return link.status();
  if (link->has_value()) {
    store_ = std::make_unique<LinkedStore>(**std::move(link));
  } else {
    store_ = std::make_unique<LocalStore>();
  }
  return store_.get();
}

HostWay& Process::host_way() {
  if (HostWay* const used = used_host_way(); used != nullptr) return *used;
  const MutexLock lock(&host_way_mutex_);
  if (host_way_ == nullptr) {
    host_way_ = std::make_unique<HostWay>(&sets_, &gpus_, &arena_, FreeOnGpu);
    used_host_way_.store(host_way_.get(), std::memory_order_release);
  }
  return *host_way_;
}

absl::Status Process::Init(const StaticSets& sets) {
  if (forked()) {
    return absl::FailedPreconditionError(kForked);
  }
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
  while (!status.ok() && joining_ && session_ != nullptr && session_->may_follow() &&
         session_->LeaveUnbegun().ok()) {
    joining_ = false;
    status = InitCaught(sets);
  }
  // The others know of what they have broken, and of this member's removal.
  const bool known = absl::IsAborted(status) || absl::IsCancelled(status);
  if (!status.ok() && !known) TellInitFailed(std::string(status.message()));
  // A refusal is an answer; a link that is broken, or a member that has given its epoch up by
  // itself, is of no use for another try.
  const bool refused = session_ != nullptr && session_->refused();
  if (!status.ok() && joining_ && !refused) session_ = nullptr;
  joining_ = false;
  return status;
}

// The program may go on without hvd, or say nothing of its own when it ends.
void Process::TellInitFailed(const std::string& why) {
  if (session_ == nullptr) {
    const auto link = ReadLink(adopted_environment());
    if (!link.ok() || !link->has_value() || !OpenSession(**link).ok()) return;
  }
  (void)session_->TellInitFailed(why).ok();
}

absl::Status Process::OpenSession(const LinkName& link) {
  if (session_ != nullptr) return absl::OkStatus();
  auto session = Session::Open(link);
  if (!session.ok()) return session.status();
  session_ = std::move(*session);
  is_elastic_.store(session_->is_elastic() ? 1 : 0);
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
  options.make_transport = FactoryFor(config);
  options.arena = &arena_;
  options.terms = config.terms;
  options.max_pending = config.max_pending;
  options.terms.push_back(ProcessSetsTerm(sets));
  return EpochWorld::Join(session_.get(), options);
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
  if (absl::Status adopted = Adopt(); !adopted.ok()) return adopted;
  const absl::StatusOr<EngineConfig> config = ReadConfig(adopted_environment());
  if (!config.ok()) return config.status();
  std::unique_ptr<Tuner> tuner;
  if (config->link) {
    if (absl::Status opened = OpenSession(*config->link); !opened.ok()) return opened;
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
  nccl_.Begin({{config->nccl_library, NcclBeside(OwnPath())}, config->nccl_shares_gpus});
  EpochState state = DescribeEpoch(world->get());
  const hvd_epoch_t epoch = state.epoch;
  state_home_.BeginEpoch(std::move(state));
  auto engine = MakeEngine(*std::move(world), *config, std::move(tuner));
  BeginTimelineOf(*config, engine->world());
  sets_.Start(engine, *config,
              [this, config = *config](EpochWorld* set) { return MakeDevice(config, set); });
  static_sets_added_ = false;
  ++epochs_;
  has_broken_ = false;
  share_.store(session_ != nullptr ? session_->share() : 0);
  const MutexLock lock(&engine_mutex_);
  engine_ = std::move(engine);
  epoch_ = epoch;
  return absl::OkStatus();
}

// Calls of other threads may hold it for a moment after it has been left: its end is told.
std::shared_ptr<Engine> Process::MakeEngine(std::unique_ptr<EpochWorld> world,
                                            const EngineConfig& config,
                                            std::unique_ptr<Tuner> tuner) {
  EngineHelpers helpers = {.tuner = std::move(tuner), .device = MakeDevice(config, world.get())};
  auto engine = std::make_unique<Engine>(std::move(world), config, std::move(helpers));
  const MutexLock lock(&engine_mutex_);
  ++engines_;
  return {engine.release(), [this](Engine* ended) {
            delete ended;
            const MutexLock told(&engine_mutex_);
            --engines_;
            engine_ended_.NotifyAll();
          }};
}

void Process::AwaitEnginesEnd() {
  const MutexLock lock(&engine_mutex_);
  while (engines_ > 0) engine_ended_.Wait(&engine_mutex_);
}

// Where no launcher says otherwise, rank 0's state is everybody's.
EpochState Process::DescribeEpoch(EpochWorld* world) {
  EpochState state;
  state.is_elastic = session_ != nullptr && session_->is_elastic();
  StateWords words;
  if (state.is_elastic) {
    words = world->state_words();
    state.files = world->TakeStateFiles();
  } else {
    const int size = world->topology().size();
    words.root = 0;
    words.rolls_back = has_broken_;
    words.survivors = epochs_ > 0 ? size : 0;
    for (int rank = 1; rank < size; ++rank) words.needy.push_back(rank);
  }
  hvd_epoch_t& epoch = state.epoch;
  epoch.number = session_ != nullptr ? world->epoch() : epochs_ + 1;
  epoch.commit = words.resume_commit;
  epoch.rank = world->rank();
  epoch.size = world->topology().size();
  epoch.survivors = words.survivors;
  epoch.is_new = epochs_ == 0 ? 1 : 0;
  epoch.sync = words.needy.empty() ? 0 : 1;
  epoch.root = words.root;
  epoch.rolls_back = words.rolls_back ? 1 : 0;
  epoch.needs_state =
      std::binary_search(words.needy.begin(), words.needy.end(), world->rank()) ? 1 : 0;
  state.needy = std::move(words.needy);
  return state;
}

hvd_epoch_t Process::epoch() const {
  const MutexLock lock(&engine_mutex_);
  if (engine_ == nullptr) return hvd_epoch_t(HVD_EPOCH_INIT);
  hvd_epoch_t epoch = epoch_;
  epoch.is_over = engine_->world().page()->aborted.load() != 0 ? 1 : 0;
  return epoch;
}

absl::StatusOr<bool> Process::IsElastic() {
  if (is_elastic_.load() < 0 && !forked()) {
    const MutexLock lock(&life_mutex_);
    if (absl::Status adopted = Adopt(); !adopted.ok()) return adopted;
    const auto link = ReadLink(adopted_environment());
    if (!link.ok()) return link.status();
    if (!link->has_value()) {
      is_elastic_.store(0);
    } else if (absl::Status opened = OpenSession(**link); !opened.ok()) {
      return opened;
    }
  }
  return is_elastic_.load() == 1;
}

std::unique_ptr<DeviceWork> Process::MakeDevice(const EngineConfig& config, EpochWorld* world) {
  NcclWayParts parts;
  parts.decision.world = world;
  parts.decision.process = &nccl_;
  parts.decision.gpus = &gpus_;
  parts.decision.operations = config.gpu_operations;
  parts.decision.sets = [this] { return sets_.member_count(); };
  parts.decision.says_way = config.log_level <= LogLevel::kInfo;
  parts.decision.says_fallback = config.log_level <= LogLevel::kWarning;
  parts.allocate_result = AllocateOnGpu;
  parts.free_result = FreeOnGpu;
  return std::make_unique<NcclWay>(parts);
}

// The program may have set it itself, where hvdrun could not see it. Errors are told by hvdrun.
void Process::BeginTimelineOf(const EngineConfig& config, const EpochWorld& world) {
  if (session_ == nullptr || world.rank() != 0) return;
  if (config.timeline.empty() || config.timeline == "DYNAMIC") return;
  if (world.page()->tracing.load() == 0) (void)session_->AskTimeline(config.timeline).ok();
}

absl::Status Process::AskTimeline(const std::string& path) {
  const MutexLock lock(&life_mutex_);
  if (session_ == nullptr) {
    return absl::UnimplementedError(
        "hvdrun writes the timeline; start this program with hvdrun to get one");
  }
  return session_->AskTimeline(path);
}

// Without hvdrun nobody ends the process after TERM.
absl::Status Process::AskGrace(uint64_t milliseconds) {
  const MutexLock lock(&life_mutex_);
  return session_ == nullptr ? absl::OkStatus() : session_->AskGrace(milliseconds);
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
  has_broken_ = engine->world().page()->aborted.load() != 0;
  // Other threads still see the engine until all their requests are done.
  sets_.Stop();
  if (HostWay* const way = used_host_way(); way != nullptr) way->EndEpoch();
  handles_.DropDone();  // so that they let go of the GPUs; some are done only now
  {
    const MutexLock guard(&engine_mutex_);
    engine_ = nullptr;
  }
  const uint64_t epoch = engine->world().epoch();
  engine.reset();
  nccl_.EndEpoch();
  gpus_.Close();
  // Once others hear that this rank has left, nothing here may write into what all of them see.
  state_home_.EndEpoch();
  if (session_ != nullptr && session_->is_elastic()) AwaitEnginesEnd();
  // The daemon's death is no failure of a shutdown.
  if (session_ != nullptr && !session_->Leave(epoch).ok()) session_ = nullptr;
}

}  // namespace hvd
