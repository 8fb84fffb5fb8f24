#include "runtime/engine/leader.h"

#include "runtime/engine/agreement_words.h"

namespace hvd {
namespace {

// Pokes at the transport to get an abort out; a dead peer must not hold it up.
constexpr int kAbortProgress = 10000;

}  // namespace

Leader::Leader(const LeaderParts& parts) : parts_(parts), negotiator_(*parts.topology) {
  const int hosts = static_cast<int>(parts.topology->hosts().size());
  for (int host = 0; host < hosts; ++host) {
    const bool speaks = is_root() ? host != 0 : host == 0;
    if (!speaks) continue;
    channels_.push_back(std::make_unique<FrameChannel>(
        parts.transport, parts.topology->first_rank(host), kAgreementChannel));
  }
}

absl::StatusOr<bool> Leader::Step() {
  absl::StatusOr<bool> moved = StepOutbox();
  if (!moved.ok()) return moved;
  bool any = *moved;
  for (size_t i = 0; i < channels_.size(); ++i) {
    moved = StepChannel(is_root() ? static_cast<int>(i) + 1 : 0, channels_[i].get());
    if (!moved.ok()) return moved;
    any = any || *moved;
  }
  return any;
}

absl::StatusOr<bool> Leader::StepOutbox() {
  bool any = false;
  while (std::optional<OutboxEntry> entry = parts_.board->TakeOutbox()) {
    any = true;
    absl::Status status;
    if (!is_root()) {
      status = channels_[0]->Send(EncodeOutbox(*entry));
    } else if (entry->is_left) {
      status = OnLeft(0, entry->left_rank);
    } else {
      status = OnReport(0, *entry);
    }
    if (!status.ok()) return status;
  }
  return any;
}

absl::StatusOr<bool> Leader::StepChannel(int host, FrameChannel* channel) {
  bool any = false;
  while (true) {
    auto message = channel->Receive();
    if (!message.ok()) return message.status();
    if (!message->has_value()) return any;
    any = true;
    if (absl::Status status = OnMessage(host, **message); !status.ok()) return status;
  }
}

absl::Status Leader::OnMessage(int host, const std::string& bytes) {
  const auto message = DecodeAgreement(bytes);
  if (!message.ok()) return message.status();
  const bool known = message->kind == AgreementKind::kLeft ||
                     message->kind == AgreementKind::kAborted ||
                     is_root() == (message->kind != AgreementKind::kDecision);
  if (!known) return absl::InternalError("an agreement message came to the wrong side");
  switch (message->kind) {
    case AgreementKind::kReport:
      return OnReport(host, message->outbox);
    case AgreementKind::kLeft:
      return is_root() ? OnLeft(host, message->outbox.left_rank)
                       : parts_.board->NoteLeftElsewhere(message->outbox.left_rank);
    case AgreementKind::kDecision:
      return OnDecision(message->decision);
    case AgreementKind::kBye:
      ++byes_;
      return absl::OkStatus();
    case AgreementKind::kAborted:
      if (is_root()) SpreadAbort(message->cause);
      return absl::AbortedError(message->cause);
  }
  return absl::OkStatus();
}

absl::Status Leader::OnDecision(const LogEntry& entry) {
  const bool fits =
      entry.number > 0 && entry.number <= Board::kEntries &&
      (entry.rows.empty() || static_cast<int>(entry.rows.size()) == parts_.topology->size());
  if (!fits) return absl::InternalError("the root sent a decision that fits nothing here");
  return parts_.board->Append({entry});
}

absl::Status Leader::OnReport(int host, const OutboxEntry& report) {
  const int ranks = parts_.topology->hosts()[host].ranks;
  if (static_cast<int>(report.rows.size()) != ranks) {
    return absl::InternalError("host " + parts_.topology->hosts()[host].name +
                               " reported a wrong number of ranks");
  }
  for (const HostDecision& decision : negotiator_.OnReport(host, report)) {
    const absl::Status status =
        decision.host == 0 ? parts_.board->Append({decision.entry})
                           : channels_[decision.host - 1]->Send(EncodeDecision(decision.entry));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Leader::OnLeft(int host, int rank) {
  OutboxEntry left;
  left.is_left = true;
  left.left_rank = rank;
  for (int other = 1; other < static_cast<int>(parts_.topology->hosts().size()); ++other) {
    if (other == host) continue;
    const absl::Status status = channels_[other - 1]->Send(EncodeOutbox(left));
    if (!status.ok()) return status;
  }
  return host == 0 ? absl::OkStatus() : parts_.board->NoteLeftElsewhere(rank);
}

absl::StatusOr<bool> Leader::HasUnsent() {
  for (auto& channel : channels_) {
    const absl::StatusOr<bool> unsent = channel->HasUnsent();
    if (!unsent.ok() || *unsent) return unsent;
  }
  return false;
}

void Leader::SpreadAbort(std::string_view cause) {
  if (abort_spread_) return;
  abort_spread_ = true;
  for (auto& channel : channels_) {
    if (!channel->Send(EncodeAborted(cause)).ok()) return;
  }
  for (int i = 0; i < kAbortProgress; ++i) {
    const absl::StatusOr<bool> unsent = HasUnsent();
    if (!unsent.ok() || !*unsent) return;
    parts_.transport->Progress();
  }
}

absl::Status Leader::SayBye() {
  return is_root() ? absl::OkStatus() : channels_[0]->Send(EncodeBye());
}

}  // namespace hvd
