// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/nccl_way.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvd::rt {
namespace {

// How long an abort lets a launch come back by itself, and how long it may take in all.
constexpr std::chrono::milliseconds kComesBack{500};
constexpr std::chrono::seconds kAbortTime{4};
// For the other ranks to leave, too.
constexpr std::chrono::seconds kEndTime{5};

void PokeProcess(void* process) { static_cast<NcclProcess*>(process)->Poke(); }

const Request* FirstOf(const DeviceRun& run) {
  const auto mine = std::find_if(run.requests.begin(), run.requests.end(),
                                 [](const Request* request) { return request != nullptr; });
  return mine == run.requests.end() ? nullptr : *mine;
}

}  // namespace

// While it lives, the communicator is not aborted, for a while at least.
class NcclWay::InUse {
 public:
  explicit InUse(NcclWay* way) : way_(*way) {
    const MutexLock lock(&way_.mutex_);
    may_ = !way_.aborting_;
    way_.in_use_ = may_;
  }
  ~InUse() {
    const MutexLock lock(&way_.mutex_);
    way_.in_use_ = false;
    way_.changed_.NotifyAll();
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  bool may() const { return may_; }

 private:
  NcclWay& way_;
  bool may_ = false;
};

// Gives the process's turn on at its end, also where memory has run out: later epochs need it.
class NcclWay::TurnTaken {
 public:
  explicit TurnTaken(Mutex* turn) : turn_(*turn) {}
  ~TurnTaken() ABSL_NO_THREAD_SAFETY_ANALYSIS { turn_.Unlock(); }
  TurnTaken(const TurnTaken&) = delete;
  TurnTaken& operator=(const TurnTaken&) = delete;

 private:
  Mutex& turn_;
};

NcclWay::NcclWay(const NcclWayParts& parts)
    : parts_(parts), decision_(parts.decision), runs_(&PokeProcess, parts.decision.process) {}

NcclWay::~NcclWay() {
  if (communicator_ == nullptr) return;
  runs_.Clear();
  End();
  {
    const MutexLock lock(&mutex_);
    while (aborting_ && !aborted_) changed_.Wait(&mutex_);
  }
  parts_.decision.process->Forget(this);
  std::thread aborter;
  {
    const MutexLock lock(&mutex_);
    aborter = std::move(aborter_);
  }
  if (aborter.joinable()) aborter.join();
  const GpuDevice::Scope scope(*decision_.device());
  absent_.reset();
}

absl::StatusOr<bool> NcclWay::Takes(const DeviceRun& run) {
  const Signature& signature = run.entries[0]->signature;
  if (!GoesByNccl(signature)) return false;
  if (way() == Way::kOpen) {
    absl::Status decided = decision_.Decide(FirstOf(run));
    if (decided.ok() && way() == Way::kNccl) decided = Begin();
    if (!decided.ok()) return Lose(decided);
  }
  if (way() == Way::kRefused) {
    return absl::InvalidArgumentError(absl::StrCat(
        "HVD_GPU_OPERATIONS is nccl, and NCCL cannot be used here: ", decision_.why()));
  }
  return way() == Way::kNccl;
}

// This rank cannot do its part, so nobody can go on. That others are gone they say themselves.
absl::Status NcclWay::Lose(const absl::Status& why) {
  if (absl::IsAborted(why) || absl::IsFailedPrecondition(why)) return why;
  EpochWorld& world = *parts_.decision.world;
  const int rank = world.GlobalRank(world.rank());
  const std::string text = absl::StrCat("rank ", rank, " cannot go on: ", why.message());
  return world.board().Abort({text.c_str(), rank});
}

// The communicator meets the others' here, so that no launch has to wait for that.
absl::Status NcclWay::Begin() {
  communicator_ = decision_.TakeCommunicator();
  const std::shared_ptr<GpuDevice>& device = decision_.device();
  EpochWorld* const world = parts_.decision.world;
  collectives_.emplace(NcclCollectivesParts{communicator_.get(), decision_.place(),
                                            device->shared_stream(),
                                            [world] { return world->waiter().Check(); }});
  absent_.emplace(device);
  execution_.emplace(NcclExecutionParts{&*collectives_, &world->collectives(), &*absent_});
  parts_.decision.process->Watch(this);
  const GpuDevice::Scope scope(*device);
  const InUse use(this);
  if (!use.may()) return world->waiter().Check();
  return collectives_->AwaitReady();
}

absl::Status NcclWay::CheckDevice(const Request& request) const {
  const int id = request.buffers.device.id;
  if (id == decision_.device()->index()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the tensor lies on GPU ", id, ", and NCCL uses GPU ", decision_.device()->index(),
      " of this rank for process set ", parts_.decision.world->watch().set,
      "; use one GPU, or HVD_GPU_OPERATIONS=host"));
}

// Where several sets keep one order: each rank of the set, one after the other, takes its process's
// turn. All sets take them in the order of the job's ranks, so no two wait for one another.
absl::Status NcclWay::AwaitTurn() {
  Collectives& collectives = parts_.decision.world->collectives();
  Mutex& turn = parts_.decision.process->launch_mutex();
  bool taken = false;
  absl::Status status;
  for (int root = 0; root < collectives.size() && status.ok(); ++root) {
    if (root == collectives.rank()) {
      turn.Lock();
      taken = true;
    }
    char token = 0;
    status = collectives.Broadcast({&token, &token, sizeof(token), root});
  }
  if (!status.ok() && taken) turn.Unlock();
  return status;
}

absl::Status NcclWay::Launch(const DeviceRun& run, DeviceEnd ended) {
  runs_.TellPassed();
  if (!decision_.ordered()) return LaunchInTurn(run, std::move(ended));
  if (absl::Status turn = AwaitTurn(); !turn.ok()) return turn;
  const TurnTaken taken(&parts_.decision.process->launch_mutex());
  return LaunchInTurn(run, std::move(ended));
}

absl::Status NcclWay::LaunchInTurn(const DeviceRun& run, DeviceEnd ended) {
  const InUse use(this);
  if (!use.may()) return parts_.decision.world->waiter().Check();
  const std::shared_ptr<GpuDevice>& device = decision_.device();
  const GpuDevice::Scope scope(*device);
  absl::Status status = AwaitCallers(run);
  if (status.ok()) status = execution_->Execute(run);
  auto event = device->TakeEvent();
  if (status.ok()) status = event.status();
  if (status.ok()) status = event->Record(device->shared_stream());
  if (!status.ok()) return Lose(status);
  auto end = std::make_shared<LaunchedEnd>(device, *std::move(event));
  for (Request* request : run.requests) {
    if (request != nullptr) request->result.device_end = end;
  }
  runs_.Add(std::move(end), std::move(ended));
  parts_.decision.process->WakeIfIdle();
  const Request* const first = FirstOf(run);
  const bool traced = first != nullptr && first->course.submitted_ns != 0;
  if (traced) runs_.Hurry();  // the timeline says when it ended
  return absl::OkStatus();
}

absl::Status NcclWay::AwaitCallers(const DeviceRun& run) const {
  const GpuDevice& device = *decision_.device();
  for (Request* request : run.requests) {
    if (request == nullptr) continue;
    if (absl::Status here = CheckDevice(*request); !here.ok()) {
      return absl::InternalError(here.message());  // the others cannot know
    }
    const CallerOrder* const order = request->buffers.device.order.get();
    absl::Status ordered = order->MakeWait(device.shared_stream());
    if (!ordered.ok()) return ordered;
    request->result.allocate_owned = parts_.allocate_result;
    request->result.free_owned = parts_.free_result;
  }
  return absl::OkStatus();
}

bool NcclWay::Look() {
  {
    const MutexLock lock(&mutex_);
    if (aborting_ && !aborted_ && std::chrono::steady_clock::now() >= give_up_at_) {
      fprintf(
          stderr,
          "hvd: rank %d: NCCL does not let go of GPU %d within %d s, after the epoch has ended; "
          "this process ends itself\n",
          parts_.decision.world->GlobalRank(parts_.decision.world->rank()),
          decision_.device()->index(), static_cast<int>(kAbortTime.count()));
      (void)kill(getpid(), SIGKILL);
    }
    if (aborting_) return !aborted_;
  }
  if (!parts_.decision.world->waiter().Check().ok()) {
    BeginAbort();
    return true;
  }
  bool more = runs_.TellPassed();
  const MutexLock lock(&mutex_);
  if (in_use_ || aborting_) return true;
  const absl::StatusOr<bool> fine = communicator_->IsReady();
  if (!fine.ok()) runs_.TellFailed(fine.status());
  return more;
}

// All communicators of the process at once: each has a thread for it. One that is aborted may wait
// for the others.
void NcclWay::BeginAbort() {
  const MutexLock lock(&mutex_);
  if (std::exchange(aborting_, true)) return;
  give_up_at_ = std::chrono::steady_clock::now() + kAbortTime;
  aborter_ = std::thread([this] { AbortCommunicator(); });
}

void NcclWay::AbortCommunicator() {
  {
    // Whoever is inside NCCL sees the epoch's end, unless NCCL holds it.
    const auto end = std::chrono::steady_clock::now() + kComesBack;
    const MutexLock lock(&mutex_);
    while (in_use_ && changed_.WaitUntil(&mutex_, end)) {
    }
  }
  {
    const GpuDevice::Scope scope(*decision_.device());
    communicator_->Abort();
  }
  const MutexLock lock(&mutex_);
  aborted_ = true;
  changed_.NotifyAll();
}

void NcclWay::Abort(const absl::Status&) {
  if (communicator_ == nullptr) return;
  runs_.Clear();
  BeginAbort();
  parts_.decision.process->Poke();  // it sees to it that this has an end
  const MutexLock lock(&mutex_);
  while (!aborted_) changed_.Wait(&mutex_);
}

// All ranks leave together, so this ends soon. If it does not, the others are gone.
void NcclWay::End() {
  {
    const MutexLock lock(&mutex_);
    if (aborting_) return;
    in_use_ = true;
  }
  const GpuDevice::Scope scope(*decision_.device());
  const auto end = std::chrono::steady_clock::now() + kEndTime;
  absl::Status ended = communicator_->BeginEnd();
  while (ended.ok()) {
    const absl::StatusOr<bool> ready = communicator_->IsReady();
    if (!ready.ok() || std::chrono::steady_clock::now() >= end) ended = absl::UnknownError("");
    if (ready.ok() && *ready) break;
    std::this_thread::yield();
  }
  if (ended.ok()) (void)communicator_->End();
  if (ended.ok()) return;  // and nobody looks at it any more: it stays in use
  {
    const MutexLock lock(&mutex_);
    in_use_ = false;
  }
  BeginAbort();
  parts_.decision.process->Poke();
}

}  // namespace hvd::rt
