// The agreement's messages between hosts: one leader a host reports to the root, the root decides.
// They travel over the data plane's transport, in the protobuf wire format. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/engine/board.h"

namespace hvd {

enum class AgreementKind {
  kReport = 1,    // leader → root: every rank of my host has asked for this
  kLeft = 2,      // leader → root → leaders: this rank will ask for nothing more
  kDecision = 3,  // root → leader: run it now, or fail it with this text
  kBye = 4,       // leader → root: I have read the last decision
  kAborted = 5,   // any → root → leaders: the epoch is broken, and this is why
};

struct AgreementMessage {
  AgreementKind kind = AgreementKind::kBye;
  OutboxEntry outbox;  // report, left
  LogEntry decision;
  std::string cause;  // aborted
};

std::string EncodeOutbox(const OutboxEntry& entry);  // a report or a left
std::string EncodeDecision(const LogEntry& entry);
std::string EncodeBye();
std::string EncodeAborted(std::string_view cause);
// Unparsable bytes, or values no rank can have sent (kinds, dimensions): InvalidArgument.
absl::StatusOr<AgreementMessage> DecodeAgreement(std::string_view bytes);

}  // namespace hvd
