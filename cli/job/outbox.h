// What the job's state table wants done. It is gathered here and carried out by the driver.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hvd/v1/link_a.pb.h"

namespace hvd {

inline constexpr int kAllHosts = -1;

struct Action {
  enum Kind {
    kPrepare,  // send PrepareHost to every host
    kSend,     // send `command` to `host`, or to kAllHosts: those whose link is open
    kSay,      // show `text` to the person
    kOverdue,  // `host` has not spoken within the start timeout: report it (HostNotStarted)
  } kind;
  int host = kAllHosts;
  v1::Command command = {};
  std::string text = {};
};

class Outbox {
 public:
  void Prepare() { actions_.push_back({Action::kPrepare}); }
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

}  // namespace hvd
