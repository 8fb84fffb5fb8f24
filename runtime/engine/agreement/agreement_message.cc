// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/agreement_message.h"

#include "proto/wire.h"
#include "runtime/engine/request/signature_words.h"

namespace hvd::rt {
namespace {

// Field numbers; kept as they are so that versions can tell each other apart.
enum MessageField {
  kSameIds = 1,
  kReport = 2,
  kLeft = 3,
  kHasRetired = 4,
  kBye = 5,
  kPlainIds = 6,  // decisions that say nothing but their id; in order with the others
  kDecision = 7,
  kRetired = 8,
  kAborted = 9,
  kAbortRank = 10,
};
enum ItemField {
  kId = 1,
  kName = 2,
  kSame = 3,
  kRank = 4,
  kSignature = 5,
  kOtherRank = 6,
  kOtherSignature = 7,
  kContributors = 8,
  kJoinedRank = 9,
  kLastJoined = 10,
  kRows = 11,
  kError = 12,
  kResult = 13,
};

using Ids = std::vector<int64_t>;

bool ReadIds(const WireReader& reader, std::vector<uint64_t>* ids) {
  Ids read;
  if (!reader.Packed(&read)) return false;
  ids->insert(ids->end(), read.begin(), read.end());
  return true;
}

// Ranks may be -1 for "none".
uint64_t FromRank(int rank) { return static_cast<uint64_t>(rank + 1); }
int ToRank(uint64_t number) { return static_cast<int>(number) - 1; }

std::string Encode(const UpReport& up) {
  const Report& report = up.report;
  WireWriter words;
  if (up.id != 0) words.Number(kId, up.id);
  if (up.id == 0) words.Bytes(kName, up.name);
  words.Number(kRank, FromRank(report.first.rank));
  if (up.same) words.Number(kSame, 1);
  if (!up.same) words.Bytes(kSignature, EncodeSignature(report.first.signature));
  if (report.other) {
    words.Number(kOtherRank, FromRank(report.other->rank))
        .Bytes(kOtherSignature, EncodeSignature(report.other->signature));
  }
  words.Number(kContributors, static_cast<uint64_t>(report.contributors));
  if (report.joined_rank >= 0) words.Number(kJoinedRank, FromRank(report.joined_rank));
  if (report.last_joined >= 0) words.Number(kLastJoined, FromRank(report.last_joined));
  if (!report.rows.empty()) words.Packed(kRows, report.rows);
  return words.bytes();
}

bool Decode(std::string_view bytes, UpReport* up) {
  WireReader reader(bytes);
  Report& report = up->report;
  bool fine = true;
  int other_rank = -1;
  while (fine && reader.Next()) {
    const uint64_t number = reader.number();
    const int field = reader.field();
    if (field == kId) up->id = number;
    if (field == kName) up->name = std::string(reader.bytes());
    if (field == kSame) up->same = true;
    if (field == kRank) report.first.rank = ToRank(number);
    if (field == kSignature) fine = DecodeSignature(reader.bytes(), &report.first.signature);
    if (field == kOtherRank) other_rank = ToRank(number);
    if (field == kOtherSignature) {
      fine = DecodeSignature(reader.bytes(), &report.other.emplace().signature);
    }
    if (field == kContributors) report.contributors = static_cast<int>(number);
    if (field == kJoinedRank) report.joined_rank = ToRank(number);
    if (field == kLastJoined) report.last_joined = ToRank(number);
    if (field == kRows) fine = reader.Packed(&report.rows);
  }
  if (report.other) report.other->rank = other_rank;
  return fine && reader.ok() && (up->id != 0 || !up->name.empty());
}

bool IsPlain(const Decision& decision) {
  return decision.id != 0 && decision.name.empty() && !decision.has_signature &&
         decision.error.empty() && decision.rows.empty() && decision.contributors == 0 &&
         decision.result < 0;
}

std::string Encode(const Decision& decision) {
  WireWriter words;
  if (decision.id != 0) words.Number(kId, decision.id);
  if (!decision.name.empty()) words.Bytes(kName, decision.name);
  if (decision.has_signature) words.Bytes(kSignature, EncodeSignature(decision.signature));
  if (!decision.error.empty()) words.Bytes(kError, decision.error);
  if (!decision.rows.empty()) words.Packed(kRows, decision.rows);
  if (decision.contributors > 0) {
    words.Number(kContributors, static_cast<uint64_t>(decision.contributors));
  }
  if (decision.result >= 0) words.Number(kResult, static_cast<uint64_t>(decision.result));
  return words.bytes();
}

bool Decode(std::string_view bytes, Decision* decision) {
  WireReader reader(bytes);
  bool fine = true;
  while (fine && reader.Next()) {
    const int field = reader.field();
    if (field == kId) decision->id = reader.number();
    if (field == kName) decision->name = std::string(reader.bytes());
    if (field == kError) decision->error = std::string(reader.bytes());
    if (field == kRows) fine = reader.Packed(&decision->rows);
    if (field == kContributors) decision->contributors = static_cast<int>(reader.number());
    if (field == kResult) decision->result = static_cast<int64_t>(reader.number());
    if (field == kSignature) {
      decision->has_signature = true;
      fine = DecodeSignature(reader.bytes(), &decision->signature);
    }
  }
  return fine && reader.ok() && (decision->id != 0 || !decision->name.empty());
}

std::string Encode(const LeftNote& left) {
  WireWriter words;
  words.Number(kRank, FromRank(left.rank));
  for (const std::string& name : left.names) words.Bytes(kName, name);
  return words.bytes();
}

bool Decode(std::string_view bytes, LeftNote* left) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == kRank) left->rank = ToRank(reader.number());
    if (reader.field() == kName) left->names.emplace_back(reader.bytes());
  }
  return reader.ok();
}

// A run of plain decisions takes one field, so that a known tensor costs its id.
void EncodeDecisions(const std::vector<Decision>& decisions, WireWriter* words) {
  Ids plain;
  const auto flush = [&] {
    if (!plain.empty()) words->Packed(kPlainIds, plain);
    plain.clear();
  };
  for (const Decision& decision : decisions) {
    if (IsPlain(decision)) {
      plain.push_back(static_cast<int64_t>(decision.id));
      continue;
    }
    flush();
    words->Bytes(kDecision, Encode(decision));
  }
  flush();
}

bool DecodePlain(const WireReader& reader, std::vector<Decision>* decisions) {
  std::vector<uint64_t> ids;
  if (!ReadIds(reader, &ids)) return false;
  for (const uint64_t id : ids) {
    if (id == 0) return false;
    decisions->emplace_back().id = id;
  }
  return true;
}

bool DecodeField(const WireReader& reader, AgreementMessage* message) {
  switch (reader.field()) {
    case kSameIds:
      return ReadIds(reader, &message->same_ids);
    case kReport:
      return Decode(reader.bytes(), &message->reports.emplace_back());
    case kLeft:
      return Decode(reader.bytes(), &message->lefts.emplace_back());
    case kHasRetired:
      message->has_retired = true;
      return true;
    case kBye:
      message->bye = true;
      return true;
    case kPlainIds:
      return DecodePlain(reader, &message->decisions);
    case kDecision:
      return Decode(reader.bytes(), &message->decisions.emplace_back());
    case kRetired:
      return ReadIds(reader, &message->retired);
    case kAborted:
      message->aborted = std::string(reader.bytes());
      return !message->aborted.empty();
    case kAbortRank:
      message->abort_rank = static_cast<int>(reader.number());
      return true;
    default:
      return true;  // of a later version
  }
}

}  // namespace

std::string EncodeAgreement(const AgreementMessage& message) {
  WireWriter words;
  if (!message.same_ids.empty()) {
    words.Packed(kSameIds, Ids(message.same_ids.begin(), message.same_ids.end()));
  }
  for (const UpReport& report : message.reports) words.Bytes(kReport, Encode(report));
  for (const LeftNote& left : message.lefts) words.Bytes(kLeft, Encode(left));
  if (message.has_retired) words.Number(kHasRetired, 1);
  if (message.bye) words.Number(kBye, 1);
  EncodeDecisions(message.decisions, &words);
  if (!message.retired.empty()) {
    words.Packed(kRetired, Ids(message.retired.begin(), message.retired.end()));
  }
  if (!message.aborted.empty()) words.Bytes(kAborted, message.aborted);
  if (message.abort_rank >= 0) words.Number(kAbortRank, static_cast<uint64_t>(message.abort_rank));
  return words.bytes();
}

absl::StatusOr<AgreementMessage> DecodeAgreement(std::string_view bytes) {
  WireReader reader(bytes);
  AgreementMessage message;
  bool fine = true;
  while (fine && reader.Next()) fine = DecodeField(reader, &message);
  if (!fine || !reader.ok() || message.empty()) {
    return absl::InvalidArgumentError("an agreement message does not parse");
  }
  return message;
}

}  // namespace hvd::rt
