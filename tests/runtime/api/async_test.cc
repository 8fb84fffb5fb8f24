// SPDX-License-Identifier: Apache-2.0
// Asynchronous calls and their handles, in a job of one rank.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "hvd/hvd.h"
#include "tests/support/patience.h"

namespace {

using Catch::Matchers::Contains;

// hvd with a setting of its own, until the end of the test.
class Session {
 public:
  Session(const char* setting, const char* value) : setting_(setting) {
    setenv(setting, value, 1);
    REQUIRE(hvd_init(nullptr) == HVD_OK);
  }
  ~Session() {
    hvd_shutdown();
    unsetenv(setting_);
  }

 private:
  const char* const setting_;
};

// Too large for the direct way: it needs somebody who closes its batch.
struct Large {
  std::vector<float> data = std::vector<float>(5000, 1.0f);
  int64_t shape[1] = {5000};
  hvd_tensor_t tensor = HVD_TENSOR_INIT;

  Large() {
    tensor.data = data.data();
    tensor.shape = shape;
    tensor.ndim = 1;
  }
  Large(const Large&) = delete;
};

bool DoneWithin(hvd_handle_t handle, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  int32_t done = 0;
  while (hvd_poll(handle, &done) == HVD_OK && done == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  return done == 1;
}

TEST_CASE("a batch that stays open for no time at all is closed without anybody waiting for it") {
  const Session session("HVD_BATCH_WAIT_US", "0");
  for (int i = 0; i < 3; ++i) {
    Large x;
    hvd_handle_t handle = 0;
    REQUIRE(hvd_allreduce_async(&x.tensor, &x.tensor, nullptr, &handle) == HVD_OK);
    CHECK(DoneWithin(handle, std::chrono::milliseconds(hvd::PatientMs(10000))));
    CHECK(hvd_wait(handle) == HVD_OK);
  }
}

bool EngineThreadSleeps() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name, stat;
    std::getline(std::ifstream(task.path() / "comm"), name);
    std::getline(std::ifstream(task.path() / "stat"), stat);
    if (name == "hvd-engine") return stat.find(") S ") != std::string::npos;
  }
  return false;
}

// Nothing goes by the board before somebody waits. (A thread that has just started looks at once.)
struct LazySession : Session {
  LazySession() : Session("HVD_BATCH_WAIT_US", "1000000") {
    while (!EngineThreadSleeps()) std::this_thread::yield();
  }
};

TEST_CASE("unnamed groups of several types are in flight together, and waited for in any order") {
  const LazySession session;
  constexpr int kGroups = 3;
  std::vector<float> x[kGroups];
  std::vector<double> y[kGroups];
  hvd_handle_t handles[kGroups] = {};
  const int64_t shape[] = {5000};
  for (int i = 0; i < kGroups; ++i) {
    x[i].assign(5000, static_cast<float>(i));
    y[i].assign(5000, i + 0.5);
    hvd_tensor_t tensors[2] = {HVD_TENSOR_INIT, HVD_TENSOR_INIT};
    for (hvd_tensor_t& tensor : tensors) {
      tensor.shape = shape;
      tensor.ndim = 1;
    }
    tensors[0].data = x[i].data();
    tensors[1].data = y[i].data();
    tensors[1].dtype = HVD_FLOAT64;
    REQUIRE(hvd_grouped_allreduce_async(tensors, nullptr, 2, nullptr, &handles[i]) == HVD_OK);
  }
  for (int i = kGroups - 1; i >= 0; --i) {
    CHECK(hvd_wait(handles[i]) == HVD_OK);
    CHECK(x[i].back() == static_cast<float>(i));
    CHECK(y[i].back() == i + 0.5);
  }
}

TEST_CASE("an error of an unnamed call says which one it is") {
  const LazySession session;
  Large x, y;
  y.shape[0] = 4999;
  CHECK(hvd_allgather(&x.tensor, &y.tensor, nullptr, nullptr) == HVD_ERR_MISMATCH);
  CHECK_THAT(hvd_last_error(), Contains("allgather 'unnamed call 1': the output has 4999 rows"));
}

// The first turn is taken until somebody waits; what comes after it in the same turns stays behind.
TEST_CASE("unnamed calls keep their order when there are more than turns") {
  constexpr int kTurns = 256, kCalls = 2 * kTurns + 2;
  const LazySession session;
  Large large;
  std::vector<float> x(kCalls, 1.0f);
  std::vector<hvd_handle_t> handles(kCalls);
  const auto done = [&](int call) {
    int32_t is_done = 0;
    return hvd_poll(handles[call], &is_done) == HVD_OK && is_done == 1;
  };
  for (int i = 0; i < kCalls; ++i) {
    hvd_tensor_t scalar = HVD_TENSOR_INIT;
    scalar.data = &x[i];
    const hvd_tensor_t* tensor = i == 0 ? &large.tensor : &scalar;
    REQUIRE(hvd_allreduce_async(tensor, tensor, nullptr, &handles[i]) == HVD_OK);
    // Calls of one element need nobody to wait for them.
    if (i == 2 * kTurns - 1) REQUIRE((done(1) && done(kTurns - 1)));
  }
  const bool later_is_done = done(2 * kTurns + 1);
  CHECK((!later_is_done || done(kTurns + 1)));
  for (const hvd_handle_t handle : handles) CHECK(hvd_wait(handle) == HVD_OK);
}

// Returns how a forked child ends that runs `body`; the parent goes on as if there were none.
int InChild(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

TEST_CASE("a forked child cannot wait for its parent's calls, nor do their work") {
  const LazySession session;
  Large x;
  hvd_handle_t handle = 0, group = 0;
  REQUIRE(hvd_allreduce_async(&x.tensor, &x.tensor, nullptr, &handle) == HVD_OK);
  REQUIRE(hvd_grouped_allgather_async(&x.tensor, nullptr, 1, nullptr, &group) == HVD_OK);
  CHECK(InChild([&] {
          int32_t done = -1;
          hvd_tensor_t result = HVD_TENSOR_INIT;
          return hvd_init(nullptr) == HVD_ERR_NOT_INITIALIZED &&
                 hvd_reset(nullptr, nullptr) == HVD_ERR_NOT_INITIALIZED &&
                 hvd_poll(handle, &done) == HVD_ERR_NOT_INITIALIZED &&
                 hvd_wait(handle) == HVD_ERR_NOT_INITIALIZED &&
                 hvd_wait_result(handle, &result) == HVD_ERR_NOT_INITIALIZED &&
                 hvd_wait_alltoall(handle, nullptr, nullptr) == HVD_ERR_NOT_INITIALIZED &&
                 hvd_wait_results(group, &result, 1) == HVD_ERR_NOT_INITIALIZED;
        }) == 0);
  CHECK(hvd_wait(handle) == HVD_OK);
  CHECK(x.data.back() == 1.0f);
  hvd_tensor_t result = HVD_TENSOR_INIT;
  CHECK(hvd_wait_results(group, &result, 1) == HVD_OK);
  hvd_free_result(&result);
}

TEST_CASE("a forked child's copy of a bucket waits for nothing") {
  const LazySession session;
  const int64_t counts[] = {5000};
  hvd_bucket_t* bucket = nullptr;
  REQUIRE(hvd_bucket_create(counts, 1, nullptr, &bucket) == HVD_OK);
  void* data = nullptr;
  REQUIRE(hvd_bucket_view(bucket, 0, &data) == HVD_OK);
  static_cast<float*>(data)[4999] = 3.0f;
  REQUIRE(hvd_bucket_ready(bucket, 0) == HVD_OK);
  CHECK(InChild([&] {
          const bool refused = hvd_bucket_ready(bucket, 0) == HVD_ERR_NOT_INITIALIZED &&
                               hvd_bucket_wait(bucket) == HVD_ERR_NOT_INITIALIZED;
          hvd_bucket_destroy(bucket);
          return refused;
        }) == 0);
  CHECK(hvd_bucket_wait(bucket) == HVD_OK);
  CHECK(static_cast<float*>(data)[4999] == 3.0f);
  hvd_bucket_destroy(bucket);
}

TEST_CASE("a handle is waited for as what it is, and stays when it is not") {
  const LazySession session;
  Large x;
  hvd_handle_t group = 0, gather = 0;
  REQUIRE(hvd_grouped_allgather_async(&x.tensor, nullptr, 1, nullptr, &group) == HVD_OK);
  REQUIRE(hvd_allgather_async(&x.tensor, nullptr, nullptr, &gather) == HVD_OK);
  hvd_tensor_t result = HVD_TENSOR_INIT;
  CHECK(hvd_wait_result(group, &result) == HVD_ERR_INVALID);
  CHECK_THAT(hvd_last_error(), Contains("is a group's") && Contains("hvd_wait_results"));
  int64_t splits[] = {-7};
  CHECK(hvd_wait_alltoall(gather, &result, splits) == HVD_ERR_INVALID);
  CHECK_THAT(hvd_last_error(),
             Contains("is no alltoall's but of: allgather") && Contains("hvd_wait_result"));
  CHECK(hvd_wait_alltoall(group, nullptr, splits) == HVD_ERR_INVALID);
  CHECK(hvd_wait_results(gather, &result, 1) == HVD_ERR_INVALID);
  CHECK_THAT(hvd_last_error(), Contains("is no group's") && Contains("hvd_wait_result"));
  CHECK(result.data == nullptr);
  CHECK(splits[0] == -7);

  REQUIRE(hvd_wait_results(group, &result, 1) == HVD_OK);
  CHECK(result.data != nullptr);
  hvd_free_result(&result);
  REQUIRE(hvd_wait_result(gather, &result) == HVD_OK);
  CHECK(result.data != nullptr);
  hvd_free_result(&result);
}

TEST_CASE("of two threads that wait for one result, one gets it") {
  const LazySession session;
  for (int i = 0; i < 500; ++i) {
    Large x;
    hvd_handle_t handle = 0;
    REQUIRE(hvd_allgather_async(&x.tensor, nullptr, nullptr, &handle) == HVD_OK);
    std::atomic<int> ready{0};
    hvd_status_t statuses[2] = {};
    hvd_tensor_t results[2] = {HVD_TENSOR_INIT, HVD_TENSOR_INIT};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        ++ready;
        while (ready < 2) std::this_thread::yield();
        statuses[t] = hvd_wait_result(handle, &results[t]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const int winner = statuses[0] == HVD_OK ? 0 : 1;
    REQUIRE(statuses[winner] == HVD_OK);
    REQUIRE(statuses[1 - winner] == HVD_ERR_INVALID);
    REQUIRE(results[winner].data != nullptr);
    REQUIRE(results[1 - winner].data == nullptr);
    hvd_free_result(&results[winner]);
  }
}

}  // namespace
