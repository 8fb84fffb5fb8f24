// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/engine_thread.h"

#include <chrono>
#include <utility>

#include "runtime/collective/kernels/float_rules.h"
#include "runtime/transport/own_thread.h"
#include "runtime/transport/short_slices.h"

namespace hvd::rt {
namespace {

// More bytes than this are worth a core at once.
constexpr size_t kSmallBatch = size_t{64} << 10;
// Each is twice as long as the one before; the first is HVD_BATCH_WAIT_US.
constexpr int kMostWindows = 2;

}  // namespace

EngineThread::EngineThread(const EnginePlace& place, Intake* intake, Executor* executor)
    : place_(place), intake_(*intake), executor_(*executor) {
  const FloatRules inherited;  // not what the program traps
  thread_ = StartThread("hvd-engine", [this] { Body(); });
}

void EngineThread::Stop() {
  if (!thread_.joinable()) return;
  {
    ExecutorRole::Lock lock(place_.role);
    place_.role->Stop();
  }
  ArmNow();
  place_.world->waiter().Ring();  // it may sleep as executor
  thread_.join();
}

void EngineThread::Arm() {
  const size_t open = place_.world->board().open_bytes();
  const bool full = open > 0 && open >= executor_.batches().fusion_threshold();
  if (full || intake_.ways().pairs().active()) return ArmNow();
  place_.role->timer().Arm(std::chrono::microseconds(executor_.batches().batch_wait_us()));
}

// While small ones are submitted one after the other, this thread leaves the core to whoever
// submits them: it would take it away again and again, for a little work each time.
bool EngineThread::MoreComes(Coming* coming) {
  const uint64_t submissions = intake_.pending().submissions();
  const uint64_t fresh = submissions - std::exchange(coming->seen, submissions);
  const bool more = coming->windows == 0 ? intake_.pending().count() > 1 : fresh > 0;
  const bool urgent = MustListen() || intake_.ways().pairs().active() ||
                      executor_.device().has_told() ||
                      place_.world->board().open_bytes() > kSmallBatch;
  if (!more || urgent || coming->windows == kMostWindows) {
    coming->windows = 0;
    return false;
  }
  place_.role->timer().Arm(
      std::chrono::microseconds(executor_.batches().batch_wait_us() << ++coming->windows));
  return true;
}

void EngineThread::Body() {
  (void)AskForShortSlices();  // it answers peers, beside a thread that computes
  ExecutorRole& role = *place_.role;
  Waiter& waiter = place_.world->waiter();
  Coming coming;
  ExecutorRole::Lock lock(&role);
  while (!role.stopping()) {
    const bool listens = MustListen() && intake_.pending().broken().ok();
    const bool work = HasWork() || listens;
    if (role.taken() || role.waiting() > 0 || !work || MoreComes(&coming)) {
      lock.Unlock();
      role.timer().Wait();
      lock.Relock();
      continue;
    }
    {
      const ExecutorRole::Term term(&role, &lock);
      waiter.set_beside(true);
      executor_.Until([this] {
        return place_.role->waiting() > 0 || (!HasWork() && place_.world->leader() == nullptr);
      });
      waiter.set_beside(false);
    }
    role.NotifyAll();
  }
}

}  // namespace hvd::rt
