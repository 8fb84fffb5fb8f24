// SPDX-License-Identifier: Apache-2.0
// What the job's state table wants done. It is gathered here and carried out by the driver.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hostfile/host_slots.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::cli {

inline constexpr int kAllHosts = -1;

struct Action {
  enum Kind {
    kPrepare,  // send PrepareHost to `host`, or to kAllHosts
    kSend,     // send `command` to `host`, or to kAllHosts: those whose link is open
    kSay,      // show `text` to the person
    kOverdue,  // `host` has not spoken within the start timeout: report it (HostNotStarted)
    kReach,    // bring `target` to its hello, as `host`: the next number
    kDrop,     // end the link to `host`, and what was started to reach it
  } kind;
  int host = kAllHosts;
  v1::Command command = {};
  std::string text = {};
  HostSlots target = {};
};

class Outbox {
 public:
  void Prepare(int host = kAllHosts) { actions_.push_back({Action::kPrepare, host}); }
  void Reach(int host, HostSlots target) {
    actions_.push_back({Action::kReach, host, {}, {}, std::move(target)});
  }
  void Drop(int host) { actions_.push_back({Action::kDrop, host}); }
  void Send(int host, v1::Command command) {
    actions_.push_back({Action::kSend, host, std::move(command)});
  }
  void Say(std::string text) { actions_.push_back({Action::kSay, kAllHosts, {}, std::move(text)}); }
  void ReportOverdue(int host) { actions_.push_back({Action::kOverdue, host}); }
  // `epoch`: only this one; 0: all.
  void Abort(int host, uint64_t epoch, const std::string& cause) {
    v1::Command command;
    command.mutable_epoch_abort()->set_epoch(epoch);
    command.mutable_epoch_abort()->set_cause(cause);
    Send(host, std::move(command));
  }

  std::vector<Action> Take() { return std::exchange(actions_, {}); }

 private:
  std::vector<Action> actions_;
};

}  // namespace hvd::cli
