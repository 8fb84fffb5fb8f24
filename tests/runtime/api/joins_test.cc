// SPDX-License-Identifier: Apache-2.0
// What a join in flight gives and refuses, in a job of one rank.
#include <atomic>
#include <catch2/catch.hpp>
#include <string>

#include "hvd/hvd.hpp"

namespace {

using Catch::Matchers::Contains;

struct InJob {
  InJob() { REQUIRE(hvd_init(nullptr) == HVD_OK); }
  ~InJob() { hvd_shutdown(); }
};

TEST_CASE("a join in flight gives the rank that joined last") {
  const InJob job;
  hvd_handle_t handle = 0;
  REQUIRE(hvd_join_async(nullptr, &handle) == HVD_OK);
  CHECK(handle != 0);
  int32_t last = -1, done = 0;
  REQUIRE(hvd_wait_for(handle, 60000000, &done) == HVD_OK);
  CHECK(done == 1);
  CHECK(hvd_poll(handle, &done) == HVD_OK);
  CHECK(hvd_wait_join(handle, &last) == HVD_OK);
  CHECK(last == 0);
  CHECK(hvd_wait_join(handle, &last) == HVD_ERR_INVALID);

  REQUIRE(hvd_join_async(nullptr, &handle) == HVD_OK);
  CHECK(hvd_wait_join(handle, nullptr) == HVD_OK);
  REQUIRE(hvd_join_async(nullptr, &handle) == HVD_OK);
  CHECK(hvd_wait(handle) == HVD_OK);
  hvd::JoinHandle joined = hvd::join_async();
  CHECK(joined.wait() == 0);
  CHECK(joined.wait() == -1);
}

TEST_CASE("a join takes of the options only how its end is told") {
  const InJob job;
  hvd_handle_t handle = 0;
  CHECK(hvd_join_async(nullptr, nullptr) == HVD_ERR_INVALID);
  const auto refused = [&](const char* field, auto change) {
    hvd_options_t options = HVD_OPTIONS_INIT;
    change(&options);
    CHECK(hvd_join_async(&options, &handle) == HVD_ERR_INVALID);
    CHECK_THAT(hvd_last_error(), Contains(std::string("options.") + field));
  };
  refused("name", [](hvd_options_t* options) { options->name = "x"; });
  refused("process_set", [](hvd_options_t* options) { options->process_set = 1; });
  refused("op", [](hvd_options_t* options) { options->op = HVD_SUM; });
  refused("root", [](hvd_options_t* options) { options->root = 1; });
  refused("prescale", [](hvd_options_t* options) { options->prescale = 2; });
  refused("flags", [](hvd_options_t* options) { options->flags = HVD_WAIT_ON_HOST; });
  refused("ready_event", [](hvd_options_t* options) { options->ready_event = options; });
  refused("result_fn", [](hvd_options_t* options) {
    options->result_fn = [](void* memory, const int64_t*, int32_t, int32_t, int32_t) {
      return memory;
    };
  });
  int32_t last = -1;
  CHECK(hvd_join(&last) == HVD_OK);  // nothing was submitted
}

struct Ends {
  std::atomic<int> joins{0}, barriers{0};
  hvd_handle_t barrier = 0;
};

TEST_CASE("from its end on a join lets this rank submit, also within its callback") {
  const InJob job;
  Ends ends;
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.done_arg = &ends;
  options.done = [](void* arg, hvd_handle_t handle, hvd_status_t status) {
    Ends& told = *static_cast<Ends*>(arg);
    hvd_options_t then = HVD_OPTIONS_INIT;
    then.done_arg = arg;
    then.done = [](void* told_arg, hvd_handle_t, hvd_status_t ended) {
      if (ended == HVD_OK) ++static_cast<Ends*>(told_arg)->barriers;
    };
    int32_t last = -1;
    const bool right = status == HVD_OK && hvd_wait_join(handle, &last) == HVD_OK && last == 0;
    if (right && hvd_barrier_async(&then, &told.barrier) == HVD_OK) ++told.joins;
  };
  hvd_handle_t handle = 0;
  for (int round = 1; round <= 20; ++round) {
    REQUIRE(hvd_join_async(&options, &handle) == HVD_OK);
    while (ends.joins < round) {
    }
    REQUIRE(hvd_wait(ends.barrier) == HVD_OK);
    while (ends.barriers < round) {
    }
  }
}

TEST_CASE("a queue gets a join's end, and its handle may be given up") {
  const InJob job;
  hvd_queue_t* queue = nullptr;
  REQUIRE(hvd_queue_create(&queue) == HVD_OK);
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.queue = queue;
  options.tag = 7;
  hvd_handle_t handle = 0;
  REQUIRE(hvd_join_async(&options, &handle) == HVD_OK);
  REQUIRE(hvd_release(handle) == HVD_OK);
  hvd_completion_t end = {};
  int32_t count = 0;
  while (count == 0) REQUIRE(hvd_queue_next(queue, &end, 1, &count) == HVD_OK);
  CHECK(end.tag == 7);
  CHECK(end.handle == handle);
  CHECK(end.status == HVD_OK);
  CHECK(hvd_queue_destroy(queue) == HVD_OK);
}

TEST_CASE("only a join has a rank that joined last") {
  const InJob job;
  hvd_handle_t handle = 0;
  REQUIRE(hvd_barrier_async(nullptr, &handle) == HVD_OK);
  int32_t last = -1;
  CHECK(hvd_wait_join(handle, &last) == HVD_ERR_INVALID);
  CHECK_THAT(hvd_last_error(), Contains("is no join's but of: barrier"));
  CHECK(hvd_wait(handle) == HVD_OK);
  CHECK(hvd_wait_join(handle, &last) == HVD_ERR_INVALID);
}

TEST_CASE("there is no join outside a job") {
  hvd_handle_t handle = 0;
  CHECK(hvd_join_async(nullptr, &handle) == HVD_ERR_NOT_INITIALIZED);
  CHECK(handle == 0);
}

}  // namespace
