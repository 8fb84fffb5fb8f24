// SPDX-License-Identifier: Apache-2.0
// This process's part in a job, from its calls' side: what was pushed in one job begins in that one
// or never.
//
// Threads: any.
#pragma once

#include <hvd/hvd.h>

#include <cstdint>
#include <mutex>
#include <shared_mutex>

namespace hvd::mx {

class Epoch {
 public:
  // The process's one. Never destroyed: the engine's threads outlive the program's end.
  static Epoch& Get();

  // How often this process has left a job. While `held` it does not leave.
  uint64_t number(const std::shared_lock<std::shared_mutex>& held) const;
  std::shared_lock<std::shared_mutex> Hold();

  // Asked again and again before this rank leaves; waits so long at most. True: all that was pushed
  // has begun, on which other ranks count; or all ranks leave, and nobody waits for what is left.
  bool MayEnd(int64_t microseconds);
  // This rank is about to leave: calls that have not begun end.
  void End();

 private:
  Epoch() = default;
  // Tells the others that this rank is leaving. False: there is no job.
  bool SayLeaving();

  std::shared_mutex mutex_;
  uint64_t number_ = 0;  // by mutex_
  std::mutex leaving_mutex_;
  hvd_handle_t leaving_ = 0;  // by leaving_mutex_: of a barrier; 0: not said
};

}  // namespace hvd::mx
