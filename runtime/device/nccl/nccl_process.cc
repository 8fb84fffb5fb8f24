// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/nccl/nccl_process.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/transport/signals_blocked.h"

namespace hvd::rt {
namespace {

// How often it looks where nobody has told it anything: errors and the epoch's end come so.
constexpr std::chrono::milliseconds kLook{50};
// After so many looks in vain it sleeps until it is woken: whoever launches need not wake it each
// time.
constexpr int kQuiet = 20;

}  // namespace

void NcclProcess::Begin(NcclSettings settings) {
  const MutexLock lock(&library_mutex_);
  settings_ = std::move(settings);
}

bool NcclProcess::may_share_gpus() const {
  const MutexLock lock(&library_mutex_);
  return settings_.may_share_gpus;
}

absl::StatusOr<const NcclLibrary*> NcclProcess::library() {
  const MutexLock lock(&library_mutex_);
  if (library_) return &*library_;
  auto loaded = NcclLibrary::Load(settings_.places);
  if (!loaded.ok()) return loaded.status();
  library_ = *std::move(loaded);
  return &*library_;
}

void NcclProcess::Watch(NcclWatched* watched) {
  {
    const MutexLock looking(&looking_mutex_);
    watched_.push_back(watched);
  }
  const MutexLock lock(&mutex_);
  if (thread_.joinable()) return;
  const SignalsBlocked inherited;
  thread_ = std::thread([this] { Body(); });
  pthread_setname_np(thread_.native_handle(), "hvd-nccl");
}

void NcclProcess::EndEpoch() {
  std::thread thread;
  {
    const MutexLock lock(&mutex_);
    if (!thread_.joinable()) return;
    ending_ = true;
    changed_.NotifyOne();
    thread = std::move(thread_);
  }
  thread.join();
  const MutexLock lock(&mutex_);
  ending_ = false;
}

void NcclProcess::Forget(NcclWatched* watched) {
  const MutexLock looking(&looking_mutex_);
  watched_.erase(std::remove(watched_.begin(), watched_.end(), watched), watched_.end());
}

void NcclProcess::Poke() {
  const MutexLock lock(&mutex_);
  poked_ = true;
  changed_.NotifyOne();
}

bool NcclProcess::LookAll() {
  bool more = false;
  const MutexLock looking(&looking_mutex_);
  for (NcclWatched* watched : watched_) more = watched->Look() || more;
  return more;
}

void NcclProcess::Body() {
  for (int quiet = 0;;) {
    quiet = LookAll() ? 0 : quiet + 1;
    if (quiet > kQuiet) {
      idle_.store(true);
      if (LookAll()) quiet = 0;
    }
    const auto look_at = std::chrono::steady_clock::now() + kLook;
    const MutexLock lock(&mutex_);
    while (!poked_ && !ending_) {
      if (quiet > kQuiet) {
        changed_.Wait(&mutex_);
      } else if (!changed_.WaitUntil(&mutex_, look_at)) {
        break;
      }
    }
    if (ending_) return;
    poked_ = false;
    idle_.store(false);
  }
}

}  // namespace hvd::rt
