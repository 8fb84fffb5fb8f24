// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/leader.h"

#include <utility>

#include "runtime/engine/agreement/agreement_message.h"

namespace hvd::rt {
namespace {

// Pokes at the transport to get an abort out; a dead peer must not hold it up.
constexpr int kAbortProgress = 10000;

FrameChannel::Message Shared(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

}  // namespace

Leader::Leader(const LeaderParts& parts)
    : parts_(parts), core_({parts.topology, parts.host, parts.board}) {
  std::vector<int> hosts = core_.children();
  if (!is_root()) hosts.insert(hosts.begin(), core_.parent());
  for (const int host : hosts) {
    const int rank = parts.topology->rank_at(host, 0);
    neighbours_.push_back(std::unique_ptr<Neighbour>(
        new Neighbour{host, FrameChannel({.transport = parts.transport,
                                          .peer = rank,
                                          .channel = parts.channel,
                                          .generation = parts.generation})}));
  }
}

absl::StatusOr<bool> Leader::Step() {
  for (auto& neighbour : neighbours_) {
    if (absl::Status heard = Hear(neighbour.get()); !heard.ok()) return heard;
  }
  absl::StatusOr<LeaderCore::Outcome> outcome = core_.Step();
  if (!outcome.ok()) return outcome.status();
  // A mark made after the end, a leave's above all, must not be taken for the end's cause.
  if (const HostPage& page = parts_.board->page(); page.aborted.load() != 0) {
    SpreadAbort(CauseOf(page));
    return absl::AbortedError(CauseOf(page).text);
  }
  if (outcome->up) {
    absl::Status sent = neighbours_.front()->channel.Send(Shared(EncodeAgreement(*outcome->up)));
    if (!sent.ok()) return sent;
  }
  for (const AgreementMessage& message : outcome->down) {
    if (absl::Status sent = SendDown(Shared(EncodeAgreement(message))); !sent.ok()) return sent;
  }
  return outcome->appended;
}

absl::Status Leader::SendDown(const FrameChannel::Message& bytes) {
  for (size_t i = is_root() ? 0 : 1; i < neighbours_.size(); ++i) {
    if (absl::Status sent = neighbours_[i]->channel.Send(bytes); !sent.ok()) return sent;
  }
  return absl::OkStatus();
}

absl::Status Leader::Hear(Neighbour* neighbour) {
  while (true) {
    auto bytes = neighbour->channel.Receive();
    if (!bytes.ok()) return bytes.status();
    if (!bytes->has_value()) return absl::OkStatus();
    const auto message = DecodeAgreement(**bytes);
    if (!message.ok()) return message.status();
    if (!message->aborted.empty()) SpreadAbort({message->aborted.c_str(), message->abort_rank});
    absl::Status taken = core_.OnMessage(neighbour->host, *message);
    if (!taken.ok()) return taken;
  }
}

absl::StatusOr<bool> Leader::HasUnsent() {
  if (core_.owes_bye()) return true;
  for (auto& neighbour : neighbours_) {
    const absl::StatusOr<bool> unsent = neighbour->channel.HasUnsent();
    if (!unsent.ok() || *unsent) return unsent;
  }
  return false;
}

void Leader::SpreadAbort(const AbortCause& cause) {
  if (abort_spread_) return;
  AgreementMessage message;
  message.aborted = *cause.text == 0 ? "the epoch was aborted" : cause.text;
  message.abort_rank = cause.rank;
  const FrameChannel::Message bytes = Shared(EncodeAgreement(message));
  abort_spread_ = true;  // not without memory: then a later call does
  for (auto& neighbour : neighbours_) {
    if (!neighbour->channel.Send(bytes).ok()) return;
  }
  for (int i = 0; i < kAbortProgress; ++i) {
    const absl::StatusOr<bool> unsent = HasUnsent();
    if (!unsent.ok() || !*unsent) return;
    parts_.transport->Progress();
  }
}

}  // namespace hvd::rt
