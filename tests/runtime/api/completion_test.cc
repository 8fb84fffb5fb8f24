// SPDX-License-Identifier: Apache-2.0
// What the C ABI refuses about the ends of calls, and what it says of them, in a job of one rank.
#include <atomic>
#include <catch2/catch.hpp>
#include <string>

#include "hvd/hvd.h"

namespace {

using Catch::Matchers::Contains;

struct InJob {
  InJob() { REQUIRE(hvd_init(nullptr) == HVD_OK); }
  ~InJob() { hvd_shutdown(); }
};

struct Small {
  float data[4] = {1, 2, 3, 4};
  int64_t shape[1] = {4};
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  hvd_options_t options = HVD_OPTIONS_INIT;
  hvd_handle_t handle = 0;

  Small() {
    tensor.data = data;
    tensor.shape = shape;
    tensor.ndim = 1;
  }
  Small(const Small&) = delete;
  hvd_status_t Submit() { return hvd_allreduce_async(&tensor, &tensor, &options, &handle); }
};

void Count(void* told, hvd_handle_t, hvd_status_t) { ++*static_cast<std::atomic<int>*>(told); }

TEST_CASE("a blocking call and a bucket have no end to be told") {
  const InJob job;
  Small x;
  std::atomic<int> told{0};
  x.options.done = Count;
  x.options.done_arg = &told;
  CHECK(hvd_allreduce(&x.tensor, &x.tensor, &x.options) == HVD_ERR_INVALID);
  CHECK_THAT(hvd_last_error(), Contains("options.done is for asynchronous collectives only"));
  CHECK(hvd_barrier(&x.options) == HVD_ERR_INVALID);
  hvd_bucket_options_t bucket_options = HVD_BUCKET_OPTIONS_INIT;
  bucket_options.reduction = &x.options;
  const int64_t count = 4;
  hvd_bucket_t* bucket = nullptr;
  CHECK(hvd_bucket_create(&count, 1, &bucket_options, &bucket) == HVD_ERR_INVALID);
  CHECK(told == 0);
}

TEST_CASE("an end is told in one way") {
  const InJob job;
  hvd_queue_t* queue = nullptr;
  REQUIRE(hvd_queue_create(&queue) == HVD_OK);
  Small x;
  std::atomic<int> told{0};
  x.options.done = Count;
  x.options.done_arg = &told;
  x.options.queue = queue;
  CHECK(x.Submit() == HVD_ERR_INVALID);
  CHECK_THAT(hvd_last_error(), Contains("both done and queue"));
  CHECK(told == 0);
  CHECK(hvd_queue_destroy(queue) == HVD_OK);
  CHECK(hvd_queue_destroy(nullptr) == HVD_OK);
  CHECK(hvd_queue_create(nullptr) == HVD_ERR_INVALID);
  CHECK(hvd_queue_fd(nullptr) == -1);
}

TEST_CASE("a call that is refused is not told of") {
  const InJob job;
  hvd_queue_t* queue = nullptr;
  REQUIRE(hvd_queue_create(&queue) == HVD_OK);
  Small x;
  x.options.queue = queue;
  x.options.name = "x";
  hvd_tensor_t nothing = x.tensor;
  nothing.data = nullptr;
  CHECK(hvd_allreduce_async(&nothing, &nothing, &x.options, &x.handle) == HVD_ERR_INVALID);
  hvd_error_info_t info = HVD_ERROR_INFO_INIT;
  REQUIRE(hvd_last_error_info(&info) == HVD_OK);
  CHECK(info.code == HVD_ERR_INVALID);
  CHECK(std::string(info.name) == "x");
  CHECK(info.rank == -1);
  CHECK(std::string(info.message) == hvd_last_error());
  hvd_completion_t end = {};
  int32_t count = -1;
  CHECK(hvd_queue_next(queue, &end, 1, &count) == HVD_OK);
  CHECK(count == 0);
  CHECK(hvd_queue_next(queue, nullptr, 1, &count) == HVD_ERR_INVALID);
  CHECK(hvd_queue_next(queue, &end, -1, &count) == HVD_ERR_INVALID);
  CHECK(hvd_queue_destroy(queue) == HVD_OK);
}

TEST_CASE("a queue outlives the calls that name it, and what it holds may be dropped with it") {
  const InJob job;
  hvd_queue_t* queue = nullptr;
  REQUIRE(hvd_queue_create(&queue) == HVD_OK);
  Small x;
  x.options.queue = queue;
  x.options.tag = 7;
  REQUIRE(x.Submit() == HVD_OK);
  REQUIRE(hvd_wait(x.handle) == HVD_OK);
  while (hvd_queue_destroy(queue) != HVD_OK) {
    CHECK_THAT(hvd_last_error(), Contains("are under way"));
  }
}

TEST_CASE("waits with a limit, and releases, say what is wrong") {
  const InJob job;
  Small x;
  int32_t done = -1;
  CHECK(hvd_wait_for(12345678, 1, &done) == HVD_ERR_INVALID);
  CHECK(hvd_release(12345678) == HVD_ERR_INVALID);
  CHECK(hvd_release(0) == HVD_ERR_INVALID);
  REQUIRE(x.Submit() == HVD_OK);
  CHECK(hvd_wait_for(x.handle, -1, &done) == HVD_ERR_INVALID);
  CHECK(hvd_wait_for(x.handle, 1, nullptr) == HVD_ERR_INVALID);
  CHECK(hvd_wait_for(x.handle, INT64_MAX, &done) == HVD_OK);
  CHECK(done == 1);
  CHECK(hvd_release(x.handle) == HVD_OK);
  CHECK(hvd_wait(x.handle) == HVD_ERR_INVALID);
  CHECK(hvd_poll(x.handle, &done) == HVD_OK);
  hvd_error_info_t info = HVD_ERROR_INFO_INIT;
  info.struct_size = 8;
  CHECK(hvd_last_error_info(&info) == HVD_ERR_INVALID);
  CHECK(hvd_last_error_info(nullptr) == HVD_ERR_INVALID);
}

}  // namespace
