// SPDX-License-Identifier: Apache-2.0
// The job's key-value store: its values, who waits for which key and until when, and what is
// answered to whom. Pure: requests and the time in, answers out. One thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/store_limits.h"
#include "store/store_words.h"

namespace hvd {

// The caller that asks: the host, and the number that its hvdd gave the call.
struct StoreCaller {
  int host = 0;
  uint64_t call = 0;
  bool operator<(const StoreCaller& other) const {
    return host != other.host ? host < other.host : call < other.call;
  }
  bool operator==(const StoreCaller& other) const {
    return host == other.host && call == other.call;
  }
};

class StoreBook {
 public:
  struct Reply {
    StoreCaller to;
    StoreAnswer answer;
  };

  explicit StoreBook(size_t most_bytes = kMostStoreBytes) : most_bytes_(most_bytes) {}

  // Returns the answers that are given now, to this caller and to those who waited for what it has
  // set. A caller that is not among them waits. `now`: seconds of any monotonic clock.
  std::vector<Reply> Ask(StoreCaller from, const StoreRequest& request, double now);
  // The caller waits no more, or is gone; so are all of a host.
  void Forget(StoreCaller caller);
  void ForgetHost(int host);
  // Answers those whose time is over.
  std::vector<Reply> Tick(double now);
  // When Tick is due; infinity when nobody waits for a time.
  double deadline() const;

  size_t keys() const { return values_.size(); }
  size_t bytes() const { return bytes_; }
  size_t waiters() const { return waiters_.size(); }

 private:
  struct Waiter {
    StoreRequest request;
    double since = 0;
    double until = std::numeric_limits<double>::infinity();
    std::set<std::string> missing;
  };
  using Waiters = std::map<StoreCaller, Waiter>;

  StoreAnswer Do(const StoreRequest& request);
  StoreAnswer Set(const StoreRequest& request, StoreValue value);
  StoreAnswer Add(const StoreRequest& request);
  StoreAnswer CompareSet(const StoreRequest& request);
  StoreAnswer Delete(const std::string& key);
  StoreValue Find(const std::string& key) const;

  void Wait(StoreCaller from, const StoreRequest& request, double now);
  StoreAnswer Found(const StoreRequest& request) const;
  StoreAnswer TimedOut(const Waiter& waiter, double now) const;
  void Arrived(const std::string& key, std::vector<Reply>* replies);
  void Gone(const std::string& key);
  void Drop(Waiters::iterator waiter);

  const size_t most_bytes_;
  size_t bytes_ = 0;  // of keys and values, with kKeyCostBytes a key
  std::unordered_map<std::string, StoreValue> values_;
  Waiters waiters_;
  std::unordered_map<std::string, std::set<StoreCaller>> by_key_;  // all that each waiter names
  std::set<std::pair<double, StoreCaller>> by_deadline_;
};

}  // namespace hvd
