#include "runtime/engine/agreement_words.h"

#include <bit>

#include "proto/wire.h"

namespace hvd {
namespace {

// Field numbers within a message of any kind; kept as they are so that versions can tell each other
// apart.
enum Field {
  kNumber = 1,
  kName = 2,
  kSignature = 3,
  kRank = 4,
  kOtherSignature = 5,
  kOtherRank = 6,
  kRows = 7,
  kError = 8,
  kContributors = 9,
};
enum SignatureField {
  kRequestKind = 1,
  kDtype = 2,
  kOp = 3,
  kRoot = 4,
  kDevice = 5,
  kShape = 6,
  kGroupCount = 7,
  kGroupHash = 8,
  kCompression = 9,
  kPrescale = 10,  // the bits of a double
  kPostscale = 11,
};

std::string Encode(const Signature& signature) {
  WireWriter words;
  if (signature.group_count != 0) {
    words.Number(kGroupCount, static_cast<uint32_t>(signature.group_count))
        .Number(kGroupHash, signature.group_hash);
  }
  if (signature.compression != 0) words.Number(kCompression, signature.compression);
  if (signature.prescale != 1.0) {
    words.Number(kPrescale, std::bit_cast<uint64_t>(signature.prescale));
  }
  if (signature.postscale != 1.0) {
    words.Number(kPostscale, std::bit_cast<uint64_t>(signature.postscale));
  }
  return words.Number(kRequestKind, static_cast<uint64_t>(signature.kind))
      .Number(kDtype, signature.dtype)
      .Number(kOp, signature.op)
      .Number(kRoot, static_cast<uint32_t>(signature.root))
      .Number(kDevice, signature.device_type)
      .Packed(kShape, {signature.shape.begin(), signature.shape.begin() + signature.ndim})
      .bytes();
}

bool Decode(std::string_view bytes, Signature* signature) {
  WireReader reader(bytes);
  std::vector<int64_t> shape;
  bool fine = true;
  while (reader.Next()) {
    const auto number = static_cast<uint32_t>(reader.number());
    if (reader.field() == kRequestKind) signature->kind = static_cast<RequestKind>(number);
    if (reader.field() == kDtype) signature->dtype = number;
    if (reader.field() == kOp) signature->op = number;
    if (reader.field() == kRoot) signature->root = static_cast<int32_t>(number);
    if (reader.field() == kDevice) signature->device_type = number;
    if (reader.field() == kShape) fine = reader.Packed(&shape);
    if (reader.field() == kGroupCount) signature->group_count = static_cast<int32_t>(number);
    if (reader.field() == kGroupHash) signature->group_hash = reader.number();
    if (reader.field() == kCompression) signature->compression = number;
    if (reader.field() == kPrescale) signature->prescale = std::bit_cast<double>(reader.number());
    if (reader.field() == kPostscale) signature->postscale = std::bit_cast<double>(reader.number());
  }
  const auto kind = static_cast<uint32_t>(signature->kind);
  if (!fine || !reader.ok() || shape.size() > kMaxDimensions || kind < 1 ||
      kind > static_cast<uint32_t>(RequestKind::kRemoveProcessSet)) {
    return false;
  }
  signature->ndim = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), signature->shape.begin());
  return true;
}

std::string Wrap(AgreementKind kind, const WireWriter& message) {
  return WireWriter().Bytes(static_cast<int>(kind), message.bytes()).bytes();
}

bool DecodeReport(std::string_view bytes, OutboxEntry* entry) {
  WireReader reader(bytes);
  Asker other;
  bool fine = true;
  while (fine && reader.Next()) {
    const auto number = static_cast<uint32_t>(reader.number());
    if (reader.field() == kNumber) entry->number = number;
    if (reader.field() == kName) entry->name = std::string(reader.bytes());
    if (reader.field() == kRank) entry->first.rank = static_cast<int>(number);
    if (reader.field() == kOtherRank) other.rank = static_cast<int>(number);
    if (reader.field() == kRows) fine = reader.Packed(&entry->rows);
    if (reader.field() == kSignature) fine = Decode(reader.bytes(), &entry->first.signature);
    if (reader.field() == kOtherSignature) {
      fine = Decode(reader.bytes(), &other.signature);
      entry->other = other;
    }
  }
  if (entry->other) entry->other->rank = other.rank;
  return fine && reader.ok();
}

bool DecodeDecision(std::string_view bytes, LogEntry* entry) {
  WireReader reader(bytes);
  bool fine = true;
  while (fine && reader.Next()) {
    if (reader.field() == kNumber) entry->number = static_cast<uint32_t>(reader.number());
    if (reader.field() == kError) entry->error = std::string(reader.bytes());
    if (reader.field() == kRows) fine = reader.Packed(&entry->rows);
    if (reader.field() == kContributors) entry->contributors = static_cast<int>(reader.number());
    if (reader.field() == kSignature) fine = Decode(reader.bytes(), &entry->signature);
  }
  return fine && reader.ok();
}

bool DecodeLeft(std::string_view bytes, OutboxEntry* entry) {
  WireReader reader(bytes);
  entry->is_left = true;
  while (reader.Next()) {
    if (reader.field() == kRank) entry->left_rank = static_cast<int>(reader.number());
  }
  return reader.ok();
}

}  // namespace

std::string EncodeOutbox(const OutboxEntry& entry) {
  if (entry.is_left) {
    return Wrap(AgreementKind::kLeft,
                WireWriter().Number(kRank, static_cast<uint64_t>(entry.left_rank)));
  }
  WireWriter report;
  report.Number(kNumber, entry.number)
      .Bytes(kName, entry.name)
      .Bytes(kSignature, Encode(entry.first.signature))
      .Number(kRank, static_cast<uint64_t>(entry.first.rank));
  if (entry.other) {
    report.Bytes(kOtherSignature, Encode(entry.other->signature))
        .Number(kOtherRank, static_cast<uint64_t>(entry.other->rank));
  }
  report.Packed(kRows, entry.rows);
  return Wrap(AgreementKind::kReport, report);
}

std::string EncodeDecision(const LogEntry& entry) {
  WireWriter decision;
  decision.Number(kNumber, entry.number)
      .Packed(kRows, entry.rows)
      .Bytes(kSignature, Encode(entry.signature))
      .Number(kContributors, static_cast<uint32_t>(entry.contributors));
  if (!entry.error.empty()) decision.Bytes(kError, entry.error);
  return Wrap(AgreementKind::kDecision, decision);
}

std::string EncodeBye() { return Wrap(AgreementKind::kBye, WireWriter()); }

std::string EncodeAborted(std::string_view cause) {
  return Wrap(AgreementKind::kAborted, WireWriter().Bytes(kError, cause));
}

absl::StatusOr<AgreementMessage> DecodeAgreement(std::string_view bytes) {
  WireReader reader(bytes);
  AgreementMessage message;
  bool fine = reader.Next();
  message.kind = static_cast<AgreementKind>(reader.field());
  switch (message.kind) {
    case AgreementKind::kReport:
      fine = fine && DecodeReport(reader.bytes(), &message.outbox);
      break;
    case AgreementKind::kLeft:
      fine = fine && DecodeLeft(reader.bytes(), &message.outbox);
      break;
    case AgreementKind::kDecision:
      fine = fine && DecodeDecision(reader.bytes(), &message.decision);
      break;
    case AgreementKind::kBye:
      break;
    case AgreementKind::kAborted:
      fine = fine && DecodeDecision(reader.bytes(), &message.decision);
      message.cause = message.decision.error;
      break;
    default:
      fine = false;
  }
  if (!fine) return absl::InvalidArgumentError("an agreement message does not parse");
  return message;
}

}  // namespace hvd
