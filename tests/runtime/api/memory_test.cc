// SPDX-License-Identifier: Apache-2.0
// hvd_alloc and hvd::Buffer in a job of one rank.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "hvd/hvd.hpp"

namespace {

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
    const bool refused = hvd_alloc(64, &more) == HVD_ERR_NOT_INITIALIZED && more == nullptr;
    _exit(read && refused && hvd_free(memory) == HVD_OK && *word == 2 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(*word == 1);
  CHECK(hvd_free(memory) == HVD_OK);
}

TEST_CASE("a Buffer owns its memory, moves, and is usable before a session") {
  hvd::Buffer<double> one(1000);
  REQUIRE(one.size() == 1000);
  one[999] = 3;
  double* const data = one.data();
  hvd::Buffer<double> two(std::move(one));
  CHECK(two.data() == data);
  CHECK(two[999] == 3);
  CHECK(one.size() == 0);
  hvd::Buffer<double> three;
  three = std::move(two);
  CHECK(three.end() - three.begin() == 1000);
  CHECK_THROWS_AS(hvd::Buffer<double>(SIZE_MAX / 2), hvd::Error);
  CHECK_THROWS_AS(hvd::Buffer<double>(SIZE_MAX / 8), hvd::Error);
}

}  // namespace
