// SPDX-License-Identifier: Apache-2.0
// The results of a call whose shapes only the exchange tells: Python waits for them, the engine's
// operation gives them.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "python/operators/mxnet/mx_array.h"

namespace hvd::mx {

// Shared by the call and by who waits for it, who may give up. Any thread.
class Results {
 public:
  explicit Results(size_t count);
  ~Results();
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  // ---- the call's side ----
  // Memory for the result of an input: a new array of that shape, where the input is. Null: MXNet
  // has none.
  void* Make(const std::vector<int64_t>& shape, const Array& input, size_t index);
  // Room for the rows of each rank, of an alltoall.
  int64_t* MakeReceived(size_t members);
  // It has ended; an empty text: well. Later ends are nothing.
  void End(const std::string& error);

  // ---- who waits ----
  // Whether it has ended, after so long a time at most.
  bool WaitFor(int64_t microseconds);
  // Once it has ended.
  const std::string& error() const { return error_; }
  // The caller's from then on; null where there is none.
  NDArrayHandle Take(size_t index);
  const std::vector<int64_t>& received() const { return received_; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_condition_;
  bool ended_ = false;                 // by mutex_
  std::string error_;                  // written before ended_
  std::vector<NDArrayHandle> arrays_;  // likewise
  std::vector<int64_t> received_;      // likewise
};

}  // namespace hvd::mx
