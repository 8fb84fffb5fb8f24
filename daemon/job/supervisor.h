// SPDX-License-Identifier: Apache-2.0
// hvdd's side of the shim: asks it, hears it, and sweeps when it has died. Loop thread only.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "daemon/shim/shim_channel.h"
#include "daemon/shim/shim_start.h"

namespace hvd::daemon {

class Supervisor {
 public:
  struct Handlers {
    std::function<void(const ShimReport&)> on_report;
    std::function<void(const std::string& how)> on_lost;  // the shim itself has died
  };

  Supervisor(ShimProcess shim, Loop* loop, Handlers handlers);

  ContainmentLevel level() const { return shim_.level; }
  const ShimProcess& shim() const { return shim_; }

  // `fds`: order, stdin, stdout, stderr, door.
  void Spawn(int slot, const std::vector<int>& fds);
  void Signal(int slot, int signal);
  // CONT and TERM to the rank's own process; to what it leaves when it ends.
  void Term(int slot);
  void TermLeftovers();
  void KillAll();
  void CountAll();
  // It does not answer: kills it, and has it be lost.
  void KillShim();
  // After shim().lease was set for the first time, or set back.
  void LeaseChanged();
  // Lets the shim go and waits until it is gone, with the last of the job.
  void End();
  // Without a shim: ends whatever of the job is left. Returns how many could not be ended.
  int Sweep(const std::string& mark);

 private:
  void OnReadable();
  void Ask(ShimRequest request, const std::vector<int>& fds = {});
  void Lose(std::chrono::milliseconds patience);
  bool AwaitShim(std::chrono::milliseconds patience, int* status);

  ShimProcess shim_;
  std::optional<ShimChannel> channel_;
  Loop* const loop_;
  const Handlers handlers_;
  bool killed_ = false;  // by us, for it did not answer
};

}  // namespace hvd::daemon
