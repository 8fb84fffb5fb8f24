#include "runtime/engine/agreement_words.h"

namespace hvd {
namespace {

void Fill(const Signature& from, v1::Signature* to) {
  to->set_kind(static_cast<uint32_t>(from.kind));
  to->set_dtype(from.dtype);
  to->set_op(from.op);
  to->set_root(from.root);
  to->set_device_type(from.device_type);
  for (int d = 0; d < from.ndim; ++d) to->add_shape(from.shape[d]);
}

Signature From(const v1::Signature& from) {
  Signature to;
  to.kind = static_cast<RequestKind>(from.kind());
  to.dtype = from.dtype();
  to.op = from.op();
  to.root = from.root();
  to.device_type = from.device_type();
  to.ndim = from.shape_size();
  for (int d = 0; d < to.ndim; ++d) to.shape[d] = from.shape(d);
  return to;
}

bool IsSane(const v1::Signature& signature) {
  return signature.kind() >= 1 && signature.kind() <= static_cast<uint32_t>(RequestKind::kLeave) &&
         signature.shape_size() <= kMaxDimensions;
}

}  // namespace

std::string EncodeOutbox(const OutboxEntry& entry) {
  v1::AgreementMessage message;
  if (entry.is_left) {
    message.mutable_left()->set_rank(entry.left_rank);
    return message.SerializeAsString();
  }
  v1::Report* report = message.mutable_report();
  report->set_number(entry.number);
  report->set_name(entry.name);
  Fill(entry.first.signature, report->mutable_signature());
  report->set_rank(entry.first.rank);
  if (entry.other) {
    Fill(entry.other->signature, report->mutable_other_signature());
    report->set_other_rank(entry.other->rank);
  }
  report->mutable_rows()->Assign(entry.rows.begin(), entry.rows.end());
  return message.SerializeAsString();
}

std::string EncodeDecision(const LogEntry& entry) {
  v1::AgreementMessage message;
  message.mutable_decision()->set_number(entry.number);
  message.mutable_decision()->set_error(entry.error);
  message.mutable_decision()->mutable_rows()->Assign(entry.rows.begin(), entry.rows.end());
  return message.SerializeAsString();
}

std::string EncodeBye() {
  v1::AgreementMessage message;
  message.mutable_bye();
  return message.SerializeAsString();
}

absl::StatusOr<v1::AgreementMessage> DecodeAgreement(const std::string& bytes) {
  v1::AgreementMessage message;
  const bool parsed = message.ParseFromString(bytes);
  const bool sane =
      parsed && message.kind_case() != v1::AgreementMessage::KIND_NOT_SET &&
      (!message.has_report() ||
       (IsSane(message.report().signature()) &&
        (!message.report().has_other_signature() || IsSane(message.report().other_signature()))));
  if (!sane) return absl::InvalidArgumentError("an agreement message does not parse");
  return message;
}

OutboxEntry ToOutboxEntry(const v1::Report& report) {
  OutboxEntry entry;
  entry.number = report.number();
  entry.name = report.name();
  entry.first = {static_cast<int>(report.rank()), From(report.signature())};
  if (report.has_other_signature()) {
    entry.other = Asker{static_cast<int>(report.other_rank()), From(report.other_signature())};
  }
  entry.rows.assign(report.rows().begin(), report.rows().end());
  return entry;
}

LogEntry ToLogEntry(const v1::Decision& decision) {
  LogEntry entry;
  entry.number = decision.number();
  entry.error = decision.error();
  entry.rows.assign(decision.rows().begin(), decision.rows().end());
  return entry;
}

}  // namespace hvd
