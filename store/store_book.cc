// SPDX-License-Identifier: Apache-2.0
#include "store/store_book.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"

namespace hvd {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr size_t kMostNamed = 4;  // keys in a message

bool Waits(const StoreRequest& request) {
  return request.verb == StoreVerb::kGet || request.verb == StoreVerb::kWait;
}

StoreAnswer Refusal(StoreOutcome outcome, std::string text) {
  StoreAnswer answer;
  answer.outcome = outcome;
  answer.text = std::move(text);
  return answer;
}

}  // namespace

std::vector<StoreBook::Reply> StoreBook::Ask(StoreCaller from, const StoreRequest& request,
                                             double now) {
  const absl::Status fine = CheckStoreRequest(request);
  if (!fine.ok()) return {{from, Refusal(StoreOutcome::kInvalid, std::string(fine.message()))}};
  if (Waits(request)) {
    Wait(from, request, now);
    const auto waiter = waiters_.find(from);
    if (!waiter->second.missing.empty() && request.timeout_us != 0) return {};
    const bool there = waiter->second.missing.empty();
    Reply reply{from, there ? Found(request) : TimedOut(waiter->second, now)};
    Drop(waiter);
    return {std::move(reply)};
  }
  const std::string key = request.keys.empty() ? "" : request.keys.front();
  const bool was_there = Find(key) != nullptr;
  std::vector<Reply> replies{{from, Do(request)}};
  const bool is_there = Find(key) != nullptr;
  if (is_there && !was_there) Arrived(key, &replies);
  if (was_there && !is_there) Gone(key);
  return replies;
}

StoreAnswer StoreBook::Do(const StoreRequest& request) {
  switch (request.verb) {
    case StoreVerb::kSet:
      return Set(request, request.value);
    case StoreVerb::kAdd:
      return Add(request);
    case StoreVerb::kCompareSet:
      return CompareSet(request);
    case StoreVerb::kDelete:
      return Delete(request.keys.front());
    case StoreVerb::kCount: {
      StoreAnswer answer;
      answer.number = static_cast<int64_t>(values_.size());
      return answer;
    }
    default:
      return Refusal(StoreOutcome::kInvalid, "the store does not know this request");
  }
}

StoreValue StoreBook::Find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : found->second;
}

StoreAnswer StoreBook::Set(const StoreRequest& request, StoreValue value) {
  const std::string& key = request.keys.front();
  const StoreValue before = Find(key);
  const size_t frees = before == nullptr ? 0 : before->size();
  const size_t needs = value->size() + (before == nullptr ? key.size() + kKeyCostBytes : 0);
  if (needs > frees && bytes_ - frees + needs > most_bytes_) {
    return Refusal(
        StoreOutcome::kFull,
        absl::StrCat(NameOf(request.verb), ": the job's store is full: ", ShownName(key), " needs ",
                     needs - frees, " bytes, ", bytes_, " of ", most_bytes_, " are taken by ",
                     values_.size(), " keys; delete keys that nobody needs any more"));
  }
  bytes_ = bytes_ - frees + needs;
  values_[key] = std::move(value);
  return {};
}

StoreAnswer StoreBook::Add(const StoreRequest& request) {
  const std::string& key = request.keys.front();
  const StoreValue before = Find(key);
  int64_t number = 0;
  if (before != nullptr && !absl::SimpleAtoi(*before, &number)) {
    return Refusal(StoreOutcome::kInvalid,
                   absl::StrCat(NameOf(request.verb), ": the value of ", ShownName(key),
                                " is no decimal number of 64 bits, which hvd_store_add makes"));
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(number, request.delta, &sum)) {
    return Refusal(StoreOutcome::kInvalid,
                   absl::StrCat(NameOf(request.verb), ": the sum in ", ShownName(key),
                                " would not fit 64 bits: ", number, " and ", request.delta));
  }
  StoreAnswer answer = Set(request, std::make_shared<const std::string>(absl::StrCat(sum)));
  answer.number = sum;
  return answer;
}

// A key that is not there counts as empty.
StoreAnswer StoreBook::CompareSet(const StoreRequest& request) {
  const StoreValue before = Find(request.keys.front());
  const bool equal = before == nullptr ? request.expected.empty() : *before == request.expected;
  StoreAnswer answer;
  if (equal) answer = Set(request, request.value);
  if (answer.outcome == StoreOutcome::kDone) answer.value = Find(request.keys.front());
  return answer;
}

StoreAnswer StoreBook::Delete(const std::string& key) {
  StoreAnswer answer;
  const auto found = values_.find(key);
  if (found == values_.end()) return answer;
  bytes_ -= key.size() + kKeyCostBytes + found->second->size();
  values_.erase(found);
  answer.number = 1;
  return answer;
}

// ---- waiting ----

void StoreBook::Wait(StoreCaller from, const StoreRequest& request, double now) {
  Forget(from);  // who asks anew has given up what it waited for
  Waiter waiter;
  waiter.request = request;
  waiter.since = now;
  if (request.timeout_us >= 0) waiter.until = now + static_cast<double>(request.timeout_us) * 1e-6;
  for (const std::string& key : request.keys) {
    if (Find(key) == nullptr) waiter.missing.insert(key);
    by_key_[key].insert(from);
  }
  if (waiter.until < kForever) by_deadline_.emplace(waiter.until, from);
  waiters_.emplace(from, std::move(waiter));
}

StoreAnswer StoreBook::Found(const StoreRequest& request) const {
  StoreAnswer answer;
  if (request.verb == StoreVerb::kGet) answer.value = Find(request.keys.front());
  return answer;
}

StoreAnswer StoreBook::TimedOut(const Waiter& waiter, double now) const {
  std::string keys;
  size_t named = 0;
  for (const std::string& key : waiter.missing) {
    if (named == kMostNamed) break;
    absl::StrAppend(&keys, named++ == 0 ? "" : ", ", ShownName(key));
  }
  if (waiter.missing.size() > named) {
    absl::StrAppend(&keys, " and ", waiter.missing.size() - named, " more");
  }
  const char* name = NameOf(waiter.request.verb);
  if (waiter.request.timeout_us == 0) {
    return Refusal(StoreOutcome::kTimedOut, absl::StrCat(name, ": nobody has set ", keys, " yet"));
  }
  return Refusal(StoreOutcome::kTimedOut,
                 absl::StrFormat("%s: nobody has set %s within %.3g s", name, keys,
                                 std::max(now - waiter.since, 0.0)));
}

void StoreBook::Arrived(const std::string& key, std::vector<Reply>* replies) {
  const auto waiting = by_key_.find(key);
  if (waiting == by_key_.end()) return;
  const std::set<StoreCaller> callers = waiting->second;
  for (const StoreCaller& caller : callers) {
    const auto waiter = waiters_.find(caller);
    waiter->second.missing.erase(key);
    if (!waiter->second.missing.empty()) continue;
    replies->push_back({caller, Found(waiter->second.request)});
    Drop(waiter);
  }
}

// All keys of a wait must be there at one time.
void StoreBook::Gone(const std::string& key) {
  const auto waiting = by_key_.find(key);
  if (waiting == by_key_.end()) return;
  for (const StoreCaller& caller : waiting->second) waiters_[caller].missing.insert(key);
}

void StoreBook::Drop(Waiters::iterator waiter) {
  for (const std::string& key : waiter->second.request.keys) {
    const auto waiting = by_key_.find(key);
    if (waiting == by_key_.end()) continue;  // named twice
    waiting->second.erase(waiter->first);
    if (waiting->second.empty()) by_key_.erase(waiting);
  }
  by_deadline_.erase({waiter->second.until, waiter->first});
  waiters_.erase(waiter);
}

void StoreBook::Forget(StoreCaller caller) {
  const auto waiter = waiters_.find(caller);
  if (waiter != waiters_.end()) Drop(waiter);
}

void StoreBook::ForgetHost(int host) {
  for (auto waiter = waiters_.lower_bound({host, 0});
       waiter != waiters_.end() && waiter->first.host == host;) {
    Drop(waiter++);
  }
}

std::vector<StoreBook::Reply> StoreBook::Tick(double now) {
  std::vector<Reply> replies;
  while (!by_deadline_.empty() && by_deadline_.begin()->first <= now) {
    const auto waiter = waiters_.find(by_deadline_.begin()->second);
    replies.push_back({waiter->first, TimedOut(waiter->second, now)});
    Drop(waiter);
  }
  return replies;
}

double StoreBook::deadline() const {
  return by_deadline_.empty() ? kForever : by_deadline_.begin()->first;
}

}  // namespace hvd
