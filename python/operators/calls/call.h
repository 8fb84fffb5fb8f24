// SPDX-License-Identifier: Apache-2.0
// A collective that a framework asks for: from its words to a call of libhvd's, whose end it is
// told.
#pragma once

#include <hvd/hvd.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace hvd {

enum class CallKind { kAllreduce, kAllgather, kReducescatter, kBroadcast, kAlltoall };

// The request of a call to libhvd. Several inputs are a group, which a broadcast and an alltoall
// have not.
struct CallRequest {
  CallKind kind = CallKind::kAllreduce;
  std::string name;
  std::string contents;                      // see hvd_options_t; empty: nothing is compared
  hvd_options_t options = HVD_OPTIONS_INIT;  // but for both texts and how the end is told
  std::vector<hvd_tensor_t> inputs;
  std::vector<hvd_tensor_t> outputs;  // none: options.result_fn gives the results' memory
  std::vector<int64_t> splits;        // of an alltoall; none: rows are divided evenly
};

// Owned by CallsByName from Start on, until its end is told.
class Call {
 public:
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Returns the key that libhvd tells calls under way apart by: the name, in its process set.
  std::string key() const {
    return std::to_string(request_.options.process_set) + ":" + request_.name;
  }
  // False: libhvd has refused it, and it has ended. Otherwise `ended` is called once, perhaps
  // before this returns, from a thread of libhvd's. For the time of `linger` this thread works for
  // libhvd, if the call does not end before.
  bool Begin(std::function<void()> ended, std::chrono::microseconds linger);

  // For how long a thread of the framework's had better work for libhvd than wake another for it,
  // where no call but this one is under way. Only where End does not go on with the program: that
  // may start the next call, and so on, all on one stack.
  virtual std::chrono::microseconds linger() const { return {}; }

 protected:
  Call() = default;
  // Tells the framework, which may go on with its program within. `handle` is 0 when libhvd has
  // refused the call. hvd_last_error has the reason.
  virtual void End(hvd_handle_t handle, hvd_status_t status) = 0;

  // "HVD_ERR_MISMATCH: ...": how errors begin in all frameworks, for hvd's own exception.
  static std::string ErrorText(hvd_status_t status);
  CallRequest& request() { return request_; }

 private:
  hvd_status_t Submit(hvd_handle_t* handle) const;
  static void Done(void* call, hvd_handle_t handle, hvd_status_t status);

  CallRequest request_;
  std::function<void()> ended_;
};

}  // namespace hvd
