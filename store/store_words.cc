// SPDX-License-Identifier: Apache-2.0
#include "store/store_words.h"

#include <utility>

#include "proto/wire.h"

namespace hvd {
namespace {

// Field numbers. The value is the last one, so that it can follow without a copy.
enum RequestField {
  kVerb = 1,
  kKey = 2,
  kExpected = 3,
  kDelta = 4,
  kTimeout = 5,
  kRequestValue = 6
};
enum AnswerField { kOutcome = 1, kText = 2, kNumber = 3, kAnswerValue = 4 };

// The head ends with the value's field number and length.
StoreBytes WithValue(const WireWriter& head, int field, const StoreValue& value) {
  if (value == nullptr) return {head.bytes(), nullptr};
  return {WireWriter(head).BytesAhead(field, value->size()).bytes(), value};
}

StoreValue Copy(std::string_view bytes) { return std::make_shared<const std::string>(bytes); }

}  // namespace

StoreBytes EncodeStoreRequest(const StoreRequest& request) {
  WireWriter head;
  head.Number(kVerb, static_cast<uint64_t>(request.verb));
  for (const std::string& key : request.keys) head.Bytes(kKey, key);
  if (!request.expected.empty()) head.Bytes(kExpected, request.expected);
  if (request.delta != 0) head.Number(kDelta, static_cast<uint64_t>(request.delta));
  if (request.timeout_us != 0) head.Number(kTimeout, static_cast<uint64_t>(request.timeout_us));
  return WithValue(head, kRequestValue, request.value);
}

StoreBytes EncodeStoreAnswer(const StoreAnswer& answer) {
  WireWriter head;
  head.Number(kOutcome, static_cast<uint64_t>(answer.outcome));
  if (!answer.text.empty()) head.Bytes(kText, answer.text);
  if (answer.number != 0) head.Number(kNumber, static_cast<uint64_t>(answer.number));
  return WithValue(head, kAnswerValue, answer.value);
}

bool DecodeStoreRequest(std::string_view bytes, StoreRequest* request) {
  WireReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case kVerb:
        if (reader.number() > static_cast<uint64_t>(StoreVerb::kWait)) return false;
        request->verb = static_cast<StoreVerb>(reader.number());
        break;
      case kKey:
        request->keys.emplace_back(reader.bytes());
        break;
      case kExpected:
        request->expected = std::string(reader.bytes());
        break;
      case kDelta:
        request->delta = static_cast<int64_t>(reader.number());
        break;
      case kTimeout:
        request->timeout_us = static_cast<int64_t>(reader.number());
        break;
      case kRequestValue:
        request->value = Copy(reader.bytes());
        break;
    }
  }
  return reader.ok() && request->verb != StoreVerb::kNone;
}

bool DecodeStoreAnswer(std::string_view bytes, StoreAnswer* answer) {
  WireReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case kOutcome:
        if (reader.number() > static_cast<uint64_t>(StoreOutcome::kRefused)) return false;
        answer->outcome = static_cast<StoreOutcome>(reader.number());
        break;
      case kText:
        answer->text = std::string(reader.bytes());
        break;
      case kNumber:
        answer->number = static_cast<int64_t>(reader.number());
        break;
      case kAnswerValue:
        answer->value = Copy(reader.bytes());
        break;
    }
  }
  return reader.ok();
}

StoreVerb VerbOf(std::string_view request) {
  WireReader reader(request);
  const bool seen = reader.Next() && reader.field() == kVerb &&
                    reader.number() <= static_cast<uint64_t>(StoreVerb::kWait);
  return seen ? static_cast<StoreVerb>(reader.number()) : StoreVerb::kNone;
}

const char* NameOf(StoreVerb verb) {
  switch (verb) {
    case StoreVerb::kSet:
      return "hvd_store_set";
    case StoreVerb::kGet:
      return "hvd_store_get";
    case StoreVerb::kAdd:
      return "hvd_store_add";
    case StoreVerb::kCompareSet:
      return "hvd_store_compare_set";
    case StoreVerb::kDelete:
      return "hvd_store_delete";
    case StoreVerb::kCount:
      return "hvd_store_count";
    case StoreVerb::kWait:
      return "hvd_store_wait";
    case StoreVerb::kNone:
      break;
  }
  return "hvd_store";
}

}  // namespace hvd
