// SPDX-License-Identifier: Apache-2.0
// Two members are read without what guards them. scripts/check-locks must find both; nothing else
// compiles this file.
#include "base/mutex.h"

namespace hvd {
namespace {

class Planted {
 public:
  int Unlocked() const { return guarded_; }
  int Unowned() const { return owned_; }
  void Set(int value) {
    const MutexLock lock(&mutex_);
    guarded_ = value;
    role_.AssertHeld();
    owned_ = value;
  }

 private:
  Mutex mutex_;
  ThreadRole role_;
  int guarded_ ABSL_GUARDED_BY(mutex_) = 0;
  int owned_ ABSL_GUARDED_BY(role_) = 0;
};

}  // namespace

int UsePlanted() {
  Planted planted;
  planted.Set(1);
  return planted.Unlocked() + planted.Unowned();
}

}  // namespace hvd
