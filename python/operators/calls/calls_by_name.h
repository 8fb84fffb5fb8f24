// The calls of this process that are under way, by name and process set. A program may be started
// again before its last run has ended: then its calls meet under the same names, which libhvd
// refuses. Here those of one name follow one another.
//
// Threads: any.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "python/operators/calls/call.h"

namespace hvd {

class CallsByName {
 public:
  // The process's one: frameworks call functions without an object.
  static CallsByName& Get();

  // Begins it, now or when all of its name that were started before have ended.
  void Start(std::unique_ptr<Call> call);

 private:
  // Begins the first of this key; those that libhvd refuses have ended with that.
  void BeginFirst(const std::string& key, std::chrono::microseconds linger);
  // The first of this key has ended. False: there are no more.
  bool EndFirst(const std::string& key);

  std::mutex mutex_;
  std::unordered_map<std::string, std::deque<std::unique_ptr<Call>>> calls_;  // by mutex_
};

}  // namespace hvd
