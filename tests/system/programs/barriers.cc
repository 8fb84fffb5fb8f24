// SPDX-License-Identifier: Apache-2.0
// barriers MODE: what a rank may leave to be done behind a barrier.
//   gather   an asynchronous call that the other ranks submit behind their barrier
//   pair     a receive that is asked for before the barrier, of what is sent behind it
//   threads  barriers of two names, on two threads, in opposite orders
//   drains   what a rank has submitted before its barrier is done when that returns
// Each in the job, and in a process set of its own.
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/system/programs/checks.h"

namespace {

hvd_options_t In(int32_t set, const char* name = nullptr) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = set;
  options.name = name;
  return options;
}

bool IsFirst(int32_t set) { return hvd_process_set_rank(set) == 0; }

void Barrier(int32_t set, const char* name = nullptr) {
  const hvd_options_t options = In(set, name);
  Must(hvd_barrier(&options), "barrier");
}

// The first rank's barrier waits for its call, too, which the others make behind theirs.
void Gather(int32_t set) {
  for (const char* barrier : {static_cast<const char*>(nullptr), "a barrier"}) {
    const int64_t shape = 1;
    int64_t mine = hvd::rank();
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = &mine;
    tensor.shape = &shape;
    tensor.ndim = 1;
    tensor.dtype = HVD_INT64;
    const hvd_options_t options = In(set, "gathered");
    hvd_handle_t handle = 0;
    if (!IsFirst(set)) Barrier(set, barrier);
    Must(hvd_allgather_async(&tensor, nullptr, &options, &handle), "allgather");
    if (IsFirst(set)) Barrier(set, barrier);
    hvd_tensor_t result = HVD_TENSOR_INIT;
    Must(hvd_wait_result(handle, &result), "allgather");
    if (result.shape[0] != hvd_process_set_size(set)) Fail("the gathered rows");
    hvd_free_result(&result);
  }
}

void Pair(int32_t set) {
  std::vector<int32_t> ranks = hvd::process_set_ranks(set);
  for (const size_t count : {size_t{1}, size_t{100000}}) {
    std::vector<float> data(count, static_cast<float>(hvd::rank()));
    const auto shape = static_cast<int64_t>(count);
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = data.data();
    tensor.shape = &shape;
    tensor.ndim = 1;
    const hvd_options_t options = In(set);
    hvd_handle_t handle = 0;
    if (IsFirst(set)) Must(hvd_recv_async(&tensor, ranks[1], 0, &options, &handle), "receive");
    Barrier(set);
    if (hvd::rank() == ranks[1]) Must(hvd_send(&tensor, ranks[0], 0, &options), "send");
    if (!IsFirst(set)) continue;
    // The barrier has waited for it.
    int32_t done = 0;
    Must(hvd_poll(handle, &done), "poll");
    if (done != 1) Fail("a barrier has returned before what was submitted earlier was done");
    Must(hvd_wait(handle), "receive");
    if (data.back() != static_cast<float>(ranks[1])) Fail("what was received");
  }
}

void Threads(int32_t set) {
  for (int round = 0; round < 50; ++round) {
    const char* const first = IsFirst(set) ? "left" : "right";
    const char* const second = IsFirst(set) ? "right" : "left";
    std::thread other([&] { Barrier(set, first); });
    Barrier(set, second);
    other.join();
  }
}

void Drains(int32_t set) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<float>> data(10, std::vector<float>(5000, 1));
    std::vector<hvd_handle_t> handles(data.size());
    const int64_t shape = 5000;
    hvd_options_t options = In(set);
    options.op = HVD_SUM;
    for (size_t i = 0; i < data.size(); ++i) {
      hvd_tensor_t tensor = HVD_TENSOR_INIT;
      tensor.data = data[i].data();
      tensor.shape = &shape;
      tensor.ndim = 1;
      Must(hvd_allreduce_async(&tensor, &tensor, &options, &handles[i]), "allreduce");
    }
    Barrier(set);
    for (size_t i = 0; i < data.size(); ++i) {
      int32_t done = 0;
      Must(hvd_poll(handles[i], &done), "poll");
      const auto sum = static_cast<float>(hvd_process_set_size(set));
      if (done != 1 || data[i].back() != sum) Fail("a barrier does not wait for earlier calls");
      Must(hvd_wait(handles[i]), "allreduce");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const hvd::Session session;
  const std::string mode = argc > 1 ? argv[1] : "";
  std::function<void(int32_t)> body;
  if (mode == "gather") body = Gather;
  if (mode == "pair") body = Pair;
  if (mode == "threads") body = Threads;
  if (mode == "drains") body = Drains;
  if (!body) Fail("which mode?");
  body(HVD_GLOBAL_PROCESS_SET);
  std::vector<int32_t> ranks(static_cast<size_t>(hvd::size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  body(hvd::add_process_set_of_members(ranks, "barriers"));
  std::printf("%s is right\n", mode.c_str());
}
