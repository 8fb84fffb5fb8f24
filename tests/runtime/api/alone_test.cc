// SPDX-License-Identifier: Apache-2.0
// libhvd without a launcher: a job of one rank, through the C ABI only.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "hvd/hvd.h"

namespace {

hvd_tensor_t Tensor(std::vector<float>& data, const int64_t* shape) {
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = data.data();
  tensor.shape = shape;
  tensor.ndim = 1;
  return tensor;
}

TEST_CASE("alone is size one, again and again") {
  unsetenv("HVD_RANK");
  unsetenv("HVD_LINK");
  CHECK(hvd_rank() == -1);
  CHECK(hvd_barrier(nullptr) == HVD_ERR_NOT_INITIALIZED);
  CHECK(std::string(hvd_last_error()).find("hvd_init") != std::string::npos);
  for (int turn = 0; turn < 3; ++turn) {
    REQUIRE(hvd_init(nullptr) == HVD_OK);
    REQUIRE(hvd_init(nullptr) == HVD_OK);
    CHECK(hvd_rank() == 0);
    CHECK(hvd_size() == 1);
    CHECK(hvd_local_size() == 1);
    CHECK(hvd_cross_size() == 1);
    CHECK(hvd_is_homogeneous() == 1);
    std::vector<float> x = {1, 2, 3}, y(3);
    const int64_t shape[] = {3};
    const hvd_tensor_t in = Tensor(x, shape), out = Tensor(y, shape);
    REQUIRE(hvd_allreduce(&in, &out, nullptr) == HVD_OK);
    CHECK(y == x);
    hvd_handle_t handle = 0;
    REQUIRE(hvd_allgather_async(&in, nullptr, nullptr, &handle) == HVD_OK);
    hvd_tensor_t result = HVD_TENSOR_INIT;
    REQUIRE(hvd_wait_result(handle, &result) == HVD_OK);
    REQUIRE(result.ndim == 1);
    CHECK(result.shape[0] == 3);
    CHECK(memcmp(result.data, x.data(), 12) == 0);
    hvd_free_result(&result);
    CHECK(hvd_wait(handle) == HVD_ERR_INVALID);
    CHECK(hvd_barrier(nullptr) == HVD_OK);
    int64_t received = -1;
    REQUIRE(hvd_alltoall(&in, nullptr, 0, &out, nullptr, nullptr, &received) == HVD_OK);
    CHECK(received == 3);
    REQUIRE(hvd_reducescatter(&in, nullptr, nullptr, &result) == HVD_OK);
    CHECK(memcmp(result.data, x.data(), 12) == 0);
    hvd_free_result(&result);
    int32_t last = -1;
    REQUIRE(hvd_join(&last) == HVD_OK);
    CHECK(last == 0);
    const int32_t everyone[] = {0};
    int32_t set = -1;
    CHECK(hvd_add_process_set(everyone, 1, &set) == HVD_ERR_DUPLICATE);
    CHECK(set == HVD_GLOBAL_PROCESS_SET);
    REQUIRE(hvd_shutdown() == HVD_OK);
    CHECK(hvd_is_initialized() == 0);
  }
}

TEST_CASE("a program of an older header gives memory for a result, too") {
  REQUIRE(hvd_init(nullptr) == HVD_OK);
  std::vector<float> x = {1, 2, 3}, y(3);
  const int64_t shape[] = {3};
  const hvd_tensor_t in = Tensor(x, shape);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.struct_size = offsetof(hvd_options_t, ready_event);
  options.ready_event = &x;  // nobody reads what that program does not have
  options.result_arg = y.data();
  options.result_fn = [](void* memory, const int64_t*, int32_t, int32_t, int32_t) {
    return memory;
  };
  REQUIRE(hvd_allgather(&in, nullptr, &options, nullptr) == HVD_OK);
  CHECK(y == x);
  CHECK(hvd_shutdown() == HVD_OK);
}

TEST_CASE("threads go on calling while hvd is shut down and started again") {
  std::atomic<bool> over{false};
  std::atomic<int> sums{0}, refused{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "of thread " + std::to_string(t);
      hvd_options_t options = HVD_OPTIONS_INIT;
      options.name = name.c_str();
      const int64_t shape[] = {3};
      while (!over) {
        std::vector<float> x = {1, 2, 3}, y(3);
        const hvd_tensor_t in = Tensor(x, shape), out = Tensor(y, shape);
        const hvd_status_t status = hvd_allreduce(&in, &out, &options);
        if (status == HVD_OK) {
          ++(y == x ? sums : wrong);
        } else {
          ++(status == HVD_ERR_NOT_INITIALIZED || status == HVD_ERR_ABORTED ? refused : wrong);
        }
      }
    });
  }
  for (int turn = 0; turn < 20; ++turn) {
    const int before = sums, refused_before = refused;
    REQUIRE(hvd_init(nullptr) == HVD_OK);
    while (sums < before + 30) std::this_thread::yield();
    REQUIRE(hvd_shutdown() == HVD_OK);
    while (refused < refused_before + 3) std::this_thread::yield();
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("half a launcher's environment is an error, not a job of one") {
  setenv("HVD_RANK", "1", 1);
  CHECK(hvd_init(nullptr) == HVD_ERR_LAUNCH);
  unsetenv("HVD_RANK");
}

TEST_CASE("a setting that makes no sense is refused at hvd_init, by name") {
  setenv("HVD_FUSION_THRESHOLD", "lots", 1);
  CHECK(hvd_init(nullptr) != HVD_OK);
  CHECK(std::string(hvd_last_error()).find("HVD_FUSION_THRESHOLD must be bytes") == 0);
  unsetenv("HVD_FUSION_THRESHOLD");
}

TEST_CASE("an hvd_init whose process sets make no sense has not happened") {
  const int32_t outside = 7;
  const int32_t* sets[] = {&outside};
  const int32_t sizes[] = {1};
  hvd_init_options_t options = HVD_INIT_OPTIONS_INIT;
  options.process_sets = sets;
  options.process_set_sizes = sizes;
  options.process_set_count = 1;
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(hvd_init(&options) == HVD_ERR_INVALID);
    CHECK(std::string(hvd_last_error()).find("7 is not one of the 1 ranks") != std::string::npos);
    CHECK(hvd_is_initialized() == 0);
  }
  REQUIRE(hvd_init(nullptr) == HVD_OK);
  CHECK(hvd_rank() == 0);
  REQUIRE(hvd_shutdown() == HVD_OK);
}

TEST_CASE("process sets may be declared fixed") {
  setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "0", 1);
  REQUIRE(hvd_init(nullptr) == HVD_OK);
  const int32_t rank = 0;
  int32_t set = 0;
  CHECK(hvd_add_process_set(&rank, 1, &set) == HVD_ERR_UNSUPPORTED);
  CHECK(std::string(hvd_last_error()).find("HVD_DYNAMIC_PROCESS_SETS=0") == 0);
  CHECK(hvd_remove_process_set(1) == HVD_ERR_UNSUPPORTED);
  REQUIRE(hvd_shutdown() == HVD_OK);
  unsetenv("HOROVOD_DYNAMIC_PROCESS_SETS");
}

TEST_CASE("what this build can do is said in lines") {
  const std::string info = hvd_build_info();
  CHECK(info.find(std::string("version=") + hvd_version() + "\n") == 0);
  CHECK(info.find("\nkernels=") != std::string::npos);
}

}  // namespace
