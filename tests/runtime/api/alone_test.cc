// libhvd without a launcher: a job of one rank, through the C ABI only.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
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
    REQUIRE(hvd_shutdown() == HVD_OK);
    CHECK(hvd_is_initialized() == 0);
  }
}

TEST_CASE("memory of hvd_alloc outlives a session and is any operation's") {
  void* memory = nullptr;
  REQUIRE(hvd_alloc(4 * sizeof(float), &memory) == HVD_OK);
  auto* data = static_cast<float*>(memory);
  data[3] = 7;
  for (int turn = 0; turn < 2; ++turn) {
    REQUIRE(hvd_init(nullptr) == HVD_OK);
    const int64_t shape[] = {4};
    hvd_tensor_t tensor = HVD_TENSOR_INIT;
    tensor.data = memory;
    tensor.shape = shape;
    tensor.ndim = 1;
    CHECK(hvd_allreduce(&tensor, &tensor, nullptr) == HVD_OK);
    REQUIRE(hvd_shutdown() == HVD_OK);
    CHECK(data[3] == 7);
  }
  CHECK(hvd_free(memory) == HVD_OK);
  CHECK(hvd_free(memory) == HVD_ERR_INVALID);
  CHECK(std::string(hvd_last_error()).find("freed already") != std::string::npos);
  CHECK(hvd_free(nullptr) == HVD_OK);
  CHECK(hvd_free(&memory) == HVD_ERR_INVALID);
  CHECK(hvd_alloc(16, nullptr) == HVD_ERR_INVALID);
  CHECK(hvd_alloc(SIZE_MAX, &memory) == HVD_ERR_UNSUPPORTED);
  CHECK(memory == nullptr);
}

TEST_CASE("a forked child reads a copy, gets none and gives none back") {
  void* memory = nullptr;
  REQUIRE(hvd_alloc(4096, &memory) == HVD_OK);
  auto* word = static_cast<int*>(memory);
  *word = 1;
  const pid_t child = fork();
  if (child == 0) {
    const bool read = *word == 1;
    *word = 2;
    void* more = nullptr;
    const bool refused = hvd_alloc(64, &more) == HVD_ERR_UNSUPPORTED && more == nullptr;
    _exit(read && refused && hvd_free(memory) == HVD_OK && *word == 2 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(*word == 1);
  CHECK(hvd_free(memory) == HVD_OK);
}

TEST_CASE("half a launcher's environment is an error, not a job of one") {
  setenv("HVD_RANK", "1", 1);
  CHECK(hvd_init(nullptr) == HVD_ERR_LAUNCH);
  unsetenv("HVD_RANK");
}

TEST_CASE("what this build can do is said in lines") {
  const std::string info = hvd_build_info();
  CHECK(info.find(std::string("version=") + hvd_version() + "\n") == 0);
  CHECK(info.find("\nkernels=") != std::string::npos);
}

}  // namespace
