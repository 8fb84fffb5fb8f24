// SPDX-License-Identifier: Apache-2.0
// This process's link to hvdd, from the first epoch that it asks for on. It outlives epochs; where
// no launcher has started the process, there is none.
//
// Threads: one at a time (Process serialises joining and leaving).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/hello.h"
#include "runtime/session/session.h"

namespace hvd::rt {

class JobLink {
 public:
  // Claims the membership, once.
  absl::Status Open(const LinkName& link);
  // Null: there is no link.
  Session* session() const { return session_.get(); }
  bool is_open() const { return session_ != nullptr; }
  bool is_elastic() const { return session_ != nullptr && session_->is_elastic(); }
  // This process's share of the host; 0 without a link.
  int share() const { return session_ != nullptr ? session_->share() : 0; }

  // The epoch that was asked for is over before it began, another may follow, and this process has
  // left it.
  bool CanAskAgain();
  // A refusal is an answer; a link that is broken, or a member that has given its epoch up by
  // itself, is of no use for another try.
  void DropUnlessRefused();
  // The others hear why this rank does not come. The program may go on without hvd, or say nothing
  // of its own when it ends. `adopted`: ProcessOrigin::environment.
  void TellInitFailed(const std::string& why, const std::vector<std::string>& adopted);
  absl::Status AskTimeline(const std::string& path);
  absl::Status AskGrace(uint64_t milliseconds);
  // Nothing of the epoch is mapped any more.
  void Leave(uint64_t epoch);

 private:
  std::unique_ptr<Session> session_;
};

}  // namespace hvd::rt
