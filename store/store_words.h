// SPDX-License-Identifier: Apache-2.0
// What is asked of the job's key-value store and what it answers, as values and as bytes
// (proto/hvd/v1/link_b.proto says what the numbers mean). Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// A value once set is never changed, so that answers to many ranks share one copy. Null: none.
using StoreValue = std::shared_ptr<const std::string>;

enum class StoreVerb {
  kNone = 0,
  kSet = 1,
  kGet = 2,
  kAdd = 3,
  kCompareSet = 4,
  kDelete = 5,
  kCount = 6,
  kWait = 7
};

inline constexpr int64_t kStoreForever = -1;

struct StoreRequest {
  StoreVerb verb = StoreVerb::kNone;
  std::vector<std::string> keys;  // one; any number to wait for; none to count
  std::string expected;           // compare_set
  int64_t delta = 0;              // add
  int64_t timeout_us = 0;         // get, wait; kStoreForever: until the job ends
  StoreValue value;               // set, compare_set
};

enum class StoreOutcome {
  kDone = 0,
  kTimedOut = 1,
  kInvalid = 2,
  kFull = 3,     // the store, or the host's room for calls
  kAborted = 4,  // the job ends
  kRefused = 5   // hvdd does not take this link
};

struct StoreAnswer {
  StoreOutcome outcome = StoreOutcome::kDone;
  std::string text;    // what went wrong
  int64_t number = 0;  // add: the sum; delete: whether it was there; count
  StoreValue value;    // get; compare_set: what is there now
};

// A message in two parts, so that a large value is not copied into it.
struct StoreBytes {
  std::string head;
  StoreValue body;  // follows; null: nothing does

  size_t size() const { return head.size() + (body == nullptr ? 0 : body->size()); }
  std::string Whole() const { return body == nullptr ? head : head + *body; }
};

StoreBytes EncodeStoreRequest(const StoreRequest& request);
StoreBytes EncodeStoreAnswer(const StoreAnswer& answer);
// False when the bytes are no such message.
bool DecodeStoreRequest(std::string_view bytes, StoreRequest* request);
bool DecodeStoreAnswer(std::string_view bytes, StoreAnswer* answer);
// Returns what an encoded request asks; kNone when that cannot be seen.
StoreVerb VerbOf(std::string_view request);

// "hvd_store_get", as users know it.
const char* NameOf(StoreVerb verb);

}  // namespace hvd
