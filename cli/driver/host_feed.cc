// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/host_feed.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cli/link/frame.h"

namespace hvd::cli {
namespace {

constexpr uint64_t kStdinWindow = 64 * 1024;
constexpr int kAllRead = -2;

}  // namespace

void HostFeed::Launched() {
  if (!std::exchange(launched_, true)) first_hosts_ = parts_.hosts->count();
}

// Its first readers keep it: nobody who comes later gets what is left of it.
bool HostFeed::Reads(int host) const {
  if (reader_ < 0) return reader_ == kAllRead && host < first_hosts_;
  const auto& ranks = parts_.state->facts().ranks;
  const size_t reader = reader_;
  return reader < ranks.size() && ranks[reader].host == host;
}

void HostFeed::Give(std::string bytes, bool end) {
  v1::Command command;
  command.mutable_stdin_chunk()->set_data(std::move(bytes));
  command.mutable_stdin_chunk()->set_end(end);
  for (int host = 0; host < parts_.hosts->count(); ++host) {
    if (Reads(host)) parts_.links->Send(host, command);
  }
}

// A host that is gone takes nothing, and holds up nobody.
std::optional<uint64_t> HostFeed::NextRoom() {
  if (!launched_) return std::nullopt;
  constexpr uint64_t kNobody = std::numeric_limits<uint64_t>::max();
  uint64_t taken = kNobody;
  for (int host = 0; host < parts_.hosts->count(); ++host) {
    const bool gone = parts_.state->facts().hosts[host].phase == HostFact::kGone;
    if (Reads(host) && !gone) taken = std::min(taken, parts_.hosts->ports[host].stdin_taken);
  }
  if (taken == kNobody) return std::nullopt;
  const uint64_t room = taken + kStdinWindow;
  if (std::exchange(room_, room) == room) return std::nullopt;
  return room;
}

void HostFeed::MaySkip(uint64_t skips) {
  skips_ = skips;
  for (int host = 0; launched_ && host < parts_.hosts->count(); ++host) SendSkips(host);
}

void HostFeed::TellSkips(int host) {
  if (skips_ != 0) SendSkips(host);
}

void HostFeed::SendSkips(int host) {
  v1::Command command;
  command.mutable_skip_output()->set_out((skips_ & kSkipOut) != 0);
  command.mutable_skip_output()->set_err((skips_ & kSkipErr) != 0);
  parts_.links->Send(host, command);
}

}  // namespace hvd::cli
