// SPDX-License-Identifier: Apache-2.0
// The calls of this process that are under way, by name and process set. A program may be started
// again before its last run has ended: then its calls meet under the same names, which libhvd
// refuses. Here those of one name follow one another.
//
// Threads: any.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "python/operators/calls/call.h"

namespace hvd {

class CallsByName {
 public:
  using Calls = std::list<std::unique_ptr<Call>>;
  // A call's place behind those of its name that came before. Its owner fills it, or leaves it.
  struct Turn {
    std::string key;
    Calls::iterator call;
  };

  // The process's one: frameworks call functions without an object.
  static CallsByName& Get();

  // Begins it, now or when all of its name that were started before have ended.
  void Start(std::unique_ptr<Call> call);

  // The same in two steps, for a framework that knows the order before the calls may begin: those
  // of one name begin in the order of their turns. `key` is the call's.
  Turn TakeTurn(const std::string& key);
  void Fill(const Turn& turn, std::unique_ptr<Call> call);
  // There will be no call.
  void Leave(const Turn& turn);
  // Whether all calls have begun, of those that have a turn.
  bool AllHaveBegun();

 private:
  // Begins the first of this key, whose turn is filled; those that libhvd refuses have ended with
  // that.
  void BeginFirst(const std::string& key, std::chrono::microseconds linger);
  // The first of this key has ended. False: there is no more that can begin.
  bool EndFirst(const std::string& key);
  // Removes it. False: the first of this key is not there, or begins when its turn is filled.
  bool Remove(const std::string& key, Calls::iterator call);

  std::mutex mutex_;
  std::unordered_map<std::string, Calls> calls_;  // by mutex_; null: a turn that is not filled
};

}  // namespace hvd
