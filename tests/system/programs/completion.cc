// SPDX-License-Identifier: Apache-2.0
// completion MODE: ends of asynchronous calls, as they are told.
//   callbacks   of calls in opposite orders: each once, not inside the submitting call, with its
//               result in memory; from within one the next is submitted
//   queue       the same through a queue's descriptor
//   mismatch    a call that ends with an error tells it
//   left        calls that others never make are told of by the time that hvd_shutdown returns
//   died        rank 1 kills itself: the others' calls are told, and the facts name what failed
//   waits       a wait with a time limit ends at it while others have not come, and later with them
//   barriers    an asynchronous barrier does not wait for what was submitted before
//   timed       a blocking call with a time limit goes on behind a handle
//   released    calls whose handles were given up go on
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hvd/hvd.h"

namespace {

constexpr int kCalls = 64;
constexpr auto kBound = std::chrono::seconds(60);

[[noreturn]] void Wrong(const char* what) {
  std::fprintf(stderr, "rank %d: %s (%s)\n", hvd_rank(), what, hvd_last_error());
  std::_Exit(3);
}
void Need(bool holds, const char* what) {
  if (!holds) Wrong(what);
}
void Ok(hvd_status_t status, const char* what) { Need(status == HVD_OK, what); }

template <class Holds>
void Await(Holds holds, const char* what) {
  const auto end = std::chrono::steady_clock::now() + kBound;
  while (!holds()) {
    Need(std::chrono::steady_clock::now() < end, what);
    std::this_thread::yield();
  }
}

// A sum of this rank's numbers, and what is told of it.
struct Sum {
  explicit Sum(int call, int64_t elements)
      : name("sum " + std::to_string(call)), count(elements), data(elements, hvd_rank() + 1.0f) {}

  hvd_options_t Options() {
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.name = name.c_str();
    options.op = HVD_SUM;
    return options;
  }
  hvd_status_t Submit(const hvd_options_t& options) {
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = data.data();
    tensor.shape = &count;
    tensor.ndim = 1;
    return hvd_allreduce_async(&tensor, &tensor, &options, &handle);
  }
  bool IsRight() const {
    const float all = hvd_size() * (hvd_size() + 1) / 2.0f;
    for (const float each : data) {
      if (each != all) return false;
    }
    return true;
  }

  const std::string name;
  const int64_t count;
  std::vector<float> data;
  hvd_handle_t handle = 0;
  std::atomic<int> told{0};
  std::atomic<int> status{-1};
  std::atomic<bool> right{false};
  Sum* next = nullptr;  // is submitted when this one is told
};

thread_local bool submitting = false;

void OnDone(void* arg, hvd_handle_t handle, hvd_status_t status) {
  Sum& sum = *static_cast<Sum*>(arg);
  Need(!submitting, "told inside the submitting call");
  Need(handle == sum.handle, "told of another handle");
  sum.status = status;
  sum.right = status == HVD_OK && sum.IsRight();
  if (sum.next != nullptr) {
    hvd_options_t options = sum.next->Options();
    options.done = OnDone;
    options.done_arg = sum.next;
    Ok(sum.next->Submit(options), "submit from within a callback");
  }
  ++sum.told;
}

void SubmitTold(Sum* sum) {
  hvd_options_t options = sum->Options();
  options.done = OnDone;
  options.done_arg = sum;
  submitting = true;
  Ok(sum->Submit(options), "submit");
  submitting = false;
}

using Sums = std::vector<std::unique_ptr<Sum>>;

// Small ones and large ones by turns.
Sums MakeSums(int count) {
  Sums sums;
  for (int i = 0; i < count; ++i) sums.push_back(std::make_unique<Sum>(i, i % 2 == 0 ? 4 : 30000));
  return sums;
}

// Opposite orders on neighbours.
int Turn(int i, int count) { return hvd_rank() % 2 == 0 ? i : count - 1 - i; }

void Callbacks() {
  const Sums sums = MakeSums(2 * kCalls);
  for (int i = 0; i < kCalls; ++i) sums[i]->next = sums[kCalls + i].get();
  for (int i = 0; i < kCalls; ++i) SubmitTold(sums[Turn(i, kCalls)].get());
  for (const auto& sum : sums) {
    Await([&] { return sum->told.load() > 0; }, "a call is not told of");
    Need(sum->status == HVD_OK && sum->right, "its result was not in memory");
    Ok(hvd_wait(sum->handle), "wait for one that was told");
  }
  for (const auto& sum : sums) Need(sum->told == 1, "told twice");
}

void Queue() {
  hvd_queue_t* queue = nullptr;
  Ok(hvd_queue_create(&queue), "queue_create");
  const Sums sums = MakeSums(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    hvd_options_t options = sums[Turn(i, kCalls)]->Options();
    options.queue = queue;
    options.tag = static_cast<uint64_t>(Turn(i, kCalls)) + 1000;
    Ok(sums[Turn(i, kCalls)]->Submit(options), "submit");
  }
  std::vector<hvd_completion_t> ends(5);
  for (int left = kCalls; left > 0;) {
    pollfd readable = {hvd_queue_fd(queue), POLLIN, 0};
    Need(poll(&readable, 1, 60000) == 1, "the queue stays empty");
    int32_t count = 0;
    Ok(hvd_queue_next(queue, ends.data(), 5, &count), "queue_next");
    Need(count > 0, "readable, and nothing there");
    for (int32_t i = 0; i < count; ++i, --left) {
      Sum& sum = *sums.at(ends[i].tag - 1000);
      Need(ends[i].handle == sum.handle && ends[i].status == HVD_OK, "a wrong completion");
      Need(sum.IsRight() && ++sum.told == 1, "a wrong result, or told twice");
      Ok(hvd_release(sum.handle), "release");
    }
  }
  pollfd readable = {hvd_queue_fd(queue), POLLIN, 0};
  Need(poll(&readable, 1, 0) == 0, "empty, and still readable");
  Ok(hvd_queue_destroy(queue), "queue_destroy");
}

void Mismatch() {
  Sum sum(0, 4 + hvd_rank());
  SubmitTold(&sum);
  Await([&] { return sum.told.load() > 0; }, "the mismatch is not told");
  Need(sum.status == HVD_ERR_MISMATCH, "told something else");
  Need(hvd_wait(sum.handle) == HVD_ERR_MISMATCH, "the wait says something else");
  hvd_error_info_t info = HVD_ERROR_INFO_INIT;
  Ok(hvd_last_error_info(&info), "last_error_info");
  Need(info.code == HVD_ERR_MISMATCH && sum.name == info.name, "the facts are wrong");
  Need(std::strstr(info.message, "sum 0") != nullptr, "the message does not name it");
}

// Or one of the others has left already, and the epoch is over.
void Meet() {
  Sum sum(-1, 4);
  if (sum.Submit(sum.Options()) == HVD_OK) (void)hvd_wait(sum.handle);
}

void Left() {
  if (hvd_rank() == 0) {
    static const Sums sums = MakeSums(kCalls);
    for (const auto& sum : sums) SubmitTold(sum.get());  // nobody leaves before that
    Meet();
    hvd_shutdown();
    for (const auto& sum : sums) {
      Need(sum->told == 1 && sum->status == HVD_ERR_ABORTED, "not told by the end of shutdown");
    }
    return;
  }
  Meet();
  hvd_shutdown();
}

void Died() {
  signal(SIGTERM, SIG_IGN);  // the job's end must not come before we have said what was told
  static const Sums sums = MakeSums(kCalls);
  Ok(hvd_barrier(nullptr), "barrier");  // all are there
  if (hvd_rank() == 1) raise(SIGKILL);
  for (const auto& sum : sums) {
    const hvd_status_t submitted = [&] {
      hvd_options_t options = sum->Options();
      options.done = OnDone;
      options.done_arg = sum.get();
      return sum->Submit(options);
    }();
    if (submitted == HVD_OK) {
      Await([&] { return sum->told.load() > 0; }, "not told");
      Need(sum->status == HVD_ERR_ABORTED, "told something else");
      Need(hvd_wait(sum->handle) == HVD_ERR_ABORTED, "the wait says something else");
    }
    Need(submitted == HVD_OK || submitted == HVD_ERR_ABORTED, "refused for another reason");
    hvd_error_info_t info = HVD_ERROR_INFO_INIT;
    Ok(hvd_last_error_info(&info), "last_error_info");
    Need(info.code == HVD_ERR_ABORTED && sum->name == info.name, "the facts are wrong");
    std::printf("told: %s\n", info.message);
    std::fflush(stdout);
  }
}

// The last rank comes when the others have said that their time was over.
void Waits() {
  Sum sum(0, 30000), over(1, 1);
  const bool last = hvd_rank() == hvd_size() - 1;
  if (!last) {
    Ok(sum.Submit(sum.Options()), "submit");
    int32_t done = 1;
    Ok(hvd_wait_for(sum.handle, 20000, &done), "wait_for");
    Need(done == 0, "done before all have come");
    Ok(hvd_wait_for(sum.handle, 0, &done), "wait_for no time");
    Need(done == 0, "done before all have come");
  }
  Ok(over.Submit(over.Options()), "submit");
  Ok(hvd_wait(over.handle), "wait");
  if (last) Ok(sum.Submit(sum.Options()), "submit");
  int32_t done = 0;
  while (done == 0) Ok(hvd_wait_for(sum.handle, 1000000, &done), "wait_for");
  Ok(hvd_wait(sum.handle), "wait");
  Need(sum.IsRight(), "a wrong sum");
  Ok(hvd_poll(sum.handle, &done), "poll after the wait");
  Need(done == 1, "a call that was waited for is done");
}

void Released() {
  const Sums sums = MakeSums(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    Sum& sum = *sums[Turn(i, kCalls)];
    if (i % 2 == 0) {
      SubmitTold(&sum);
    } else {
      Ok(sum.Submit(sum.Options()), "submit");
    }
    Ok(hvd_release(sum.handle), "release");
    Need(hvd_release(sum.handle) == HVD_ERR_INVALID, "released twice");
    Need(hvd_wait(sum.handle) == HVD_ERR_INVALID, "waited for after its release");
  }
  Ok(hvd_barrier(nullptr), "barrier");  // drains
  for (const auto& sum : sums) Need(sum->IsRight(), "a released call did not go on");
}

// The last rank makes the sum that the others have submitted before only after the barrier.
void Barriers() {
  Sum sum(0, 4);
  const bool last = hvd_rank() == hvd_size() - 1;
  if (!last) Ok(sum.Submit(sum.Options()), "submit");
  hvd_handle_t barrier = 0;
  Ok(hvd_barrier_async(nullptr, &barrier), "barrier_async");
  Ok(hvd_wait(barrier), "wait for the barrier");
  if (last) Ok(sum.Submit(sum.Options()), "submit");
  Ok(hvd_wait(sum.handle), "wait");
  Need(sum.IsRight(), "a wrong sum");
  hvd_tensor_t tensor = HVD_TENSOR_INIT, result = HVD_TENSOR_INIT;
  tensor.data = sum.data.data();
  tensor.shape = &sum.count;
  tensor.ndim = 1;
  Ok(hvd_allgather(&tensor, nullptr, nullptr, &result), "allgather");
  Need(reinterpret_cast<uintptr_t>(result.data) % 64 == 0, "a result that is not aligned");
  hvd_free_result(&result);
}

// The last rank comes when the others have said that their time was over.
void Timed() {
  Sum sum(0, 30000), over(1, 1);
  const bool last = hvd_rank() == hvd_size() - 1;
  const hvd_options_t options = sum.Options();
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = sum.data.data();
  tensor.shape = &sum.count;
  tensor.ndim = 1;
  Need(hvd_allreduce_for(&tensor, &tensor, &options, -1, &sum.handle) == HVD_ERR_INVALID,
       "a negative time");
  if (!last) {
    Ok(hvd_allreduce_for(&tensor, &tensor, &options, 20000, &sum.handle), "allreduce_for");
    Need(sum.handle != 0, "done before all have come");
    hvd_handle_t again = 0;
    Need(
        hvd_allreduce_for(&tensor, &tensor, &options, 0, &again) == HVD_ERR_DUPLICATE && again == 0,
        "the name is free while its call goes on");
  }
  Ok(over.Submit(over.Options()), "submit");
  Ok(hvd_wait(over.handle), "wait");
  if (last) Ok(hvd_allreduce_for(&tensor, &tensor, &options, 60000000, &sum.handle), "the last's");
  Need(!last || sum.handle == 0, "a handle, and nothing to wait for");
  if (!last) Ok(hvd_wait(sum.handle), "wait");
  Need(sum.IsRight(), "a wrong sum");
  for (int i = 0; i < 2000; ++i) {
    Sum small(i % 7, i % 3 == 0 ? 30000 : 4);
    const hvd_options_t small_options = small.Options();
    tensor.data = small.data.data();
    tensor.shape = &small.count;
    hvd_handle_t handle = 0;
    Ok(hvd_allreduce_for(&tensor, &tensor, &small_options, i % 5 == 0 ? 0 : 1000000, &handle),
       "allreduce_for in a loop");
    if (handle != 0) Ok(hvd_wait(handle), "wait in a loop");
    Need(small.IsRight(), "a wrong sum in a loop");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string mode = argv[1];
  if (hvd_init(nullptr) != HVD_OK) Wrong("init");
  if (mode == "callbacks") Callbacks();
  if (mode == "queue") Queue();
  if (mode == "mismatch") Mismatch();
  if (mode == "left") Left();
  if (mode == "died") Died();
  if (mode == "waits") Waits();
  if (mode == "barriers") Barriers();
  if (mode == "timed") Timed();
  if (mode == "released") Released();
  hvd_shutdown();
  return 0;
}
