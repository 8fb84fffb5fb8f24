// SPDX-License-Identifier: Apache-2.0
// The stop of all that runs on this host, carried out: the StopPlan says when to ask, to kill and
// to give up; the shim does it. Loop thread only.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "base/loop.h"
#include "daemon/job/stop_plan.h"
#include "daemon/job/supervisor.h"

namespace hvd::daemon {

struct HostStopHandlers {
  std::function<void()> on_term;  // ask every living rank
  std::function<void()> on_over;  // survivors() says how
};

class HostStop {
 public:
  HostStop(Loop* loop, HostStopHandlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}

  // Null: there is no shim, and nothing runs.
  void Use(Supervisor* supervisor) { supervisor_ = supervisor; }
  // Asks for the stop, or for a sooner one.
  void Begin(bool kill, std::chrono::duration<double> grace);
  // Nothing lives in the containment. Nothing, where no stop has begun.
  void Emptied();
  // What could not be ended has been counted, by the shim or by the sweep in its place.
  void Counted(int survivors);
  // The shim is lost: there is nobody to kill by, and nobody left to wait for.
  void Swept(int survivors);

  bool begun() const { return plan_.begun(); }
  std::optional<TimePoint> deadline() const { return plan_.deadline(); }
  // Empty: the stop is not over.
  std::optional<int> survivors() const { return survivors_; }

 private:
  void Do(StopPlan::Do what);
  void Arm();

  Loop* const loop_;
  const HostStopHandlers handlers_;
  Supervisor* supervisor_ = nullptr;
  StopPlan plan_;
  Loop::TimerId timer_{};
  std::optional<int> survivors_;
};

}  // namespace hvd::daemon
