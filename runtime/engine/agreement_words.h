// Board values ↔ the agreement's messages. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "hvd/v1/agreement.pb.h"
#include "runtime/engine/board.h"

namespace hvd {

std::string EncodeOutbox(const OutboxEntry& entry);  // Report or Left
std::string EncodeDecision(const LogEntry& entry);
std::string EncodeBye();
// Unparsable bytes, or values no rank can have sent (kinds, dimensions out of range):
// InvalidArgument.
absl::StatusOr<v1::AgreementMessage> DecodeAgreement(const std::string& bytes);
OutboxEntry ToOutboxEntry(const v1::Report& report);
LogEntry ToLogEntry(const v1::Decision& decision);

}  // namespace hvd
