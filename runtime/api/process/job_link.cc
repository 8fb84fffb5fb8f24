// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/process/job_link.h"

#include <utility>

#include "runtime/engine/tuning/config.h"

namespace hvd::rt {

absl::Status JobLink::Open(const LinkName& link) {
  if (session_ != nullptr) return absl::OkStatus();
  auto session = Session::Open(link);
  if (!session.ok()) return session.status();
  session_ = std::move(*session);
  return absl::OkStatus();
}

bool JobLink::CanAskAgain() {
  return session_ != nullptr && session_->may_follow() && session_->LeaveUnbegun().ok();
}

void JobLink::DropUnlessRefused() {
  if (session_ != nullptr && !session_->refused()) session_ = nullptr;
}

void JobLink::TellInitFailed(const std::string& why, const std::vector<std::string>& adopted) {
  if (session_ == nullptr) {
    const auto link = ReadLink(adopted);
    if (!link.ok() || !link->has_value() || !Open(**link).ok()) return;
  }
  (void)session_->TellInitFailed(why).ok();
}

absl::Status JobLink::AskTimeline(const std::string& path) {
  if (session_ != nullptr) return session_->AskTimeline(path);
  return absl::UnimplementedError(
      "hvdrun writes the timeline; start this program with hvdrun to get one");
}

// Without hvdrun nobody ends the process after TERM.
absl::Status JobLink::AskGrace(uint64_t milliseconds) {
  return session_ == nullptr ? absl::OkStatus() : session_->AskGrace(milliseconds);
}

// The daemon's death is no failure of a shutdown.
void JobLink::Leave(uint64_t epoch) {
  if (session_ != nullptr && !session_->Leave(epoch).ok()) session_ = nullptr;
}

}  // namespace hvd::rt
