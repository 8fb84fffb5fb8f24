// SPDX-License-Identifier: Apache-2.0
// What calls are called: names of users, of hvd itself, and none. In a job of one rank.
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "hvd/hvd.hpp"

namespace {

using Catch::Matchers::Contains;

struct Number {
  float value = 1;
  int64_t shape[1] = {1};
  hvd_tensor_t tensor = HVD_TENSOR_INIT;

  Number() {
    tensor.data = &value;
    tensor.shape = shape;
    tensor.ndim = 1;
  }
  Number(const Number&) = delete;
};

// The name must live as long as the options.
hvd_options_t Named(const char* name) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = name;
  options.op = HVD_SUM;
  return options;
}

// Whatever takes a name.
std::vector<hvd_status_t> CallAll(const std::string& name) {
  Number x;
  const hvd_options_t options = Named(name.c_str());
  hvd_options_t plain = options;
  plain.op = HVD_AVERAGE;
  hvd_handle_t handle = 0;
  hvd_tensor_t result = HVD_TENSOR_INIT;
  hvd_bucket_options_t of_bucket = HVD_BUCKET_OPTIONS_INIT;
  of_bucket.reduction = &options;
  const int64_t count = 1;
  hvd_bucket_t* bucket = nullptr;
  const std::vector<hvd_status_t> all = {
      hvd_allreduce(&x.tensor, &x.tensor, &options),
      hvd_allreduce_async(&x.tensor, &x.tensor, &options, &handle),
      hvd_grouped_allreduce(&x.tensor, &x.tensor, 1, &options),
      hvd_broadcast(&x.tensor, &x.tensor, &plain),
      hvd_barrier(&plain),
      hvd_allgather(&x.tensor, nullptr, &plain, &result),
      hvd_bucket_create(&count, 1, &of_bucket, &bucket)};
  hvd_free_result(&result);
  hvd_bucket_destroy(bucket);
  if (all[1] == HVD_OK) CHECK(hvd_wait(handle) == HVD_OK);
  return all;
}

TEST_CASE("names of hvd's own calls are nobody else's") {
  const hvd::Session session;
  for (const std::string name : {"\x01shutdown", "\x01join", "\x01hvd: join", "\x02x (float32)"}) {
    for (const hvd_status_t status : CallAll(name)) {
      CHECK(status == HVD_ERR_INVALID);
      CHECK_THAT(hvd_last_error(), Contains("options.name begins with the byte"));
    }
  }
}

void CallUnnamed() {
  Number x;
  CHECK(hvd_allreduce(&x.tensor, &x.tensor, nullptr) == HVD_OK);
}

void CallGroup() {
  Number x;
  double y = 1;
  hvd_tensor_t group[2] = {x.tensor, x.tensor};
  group[1].data = &y;
  group[1].dtype = HVD_FLOAT64;
  const hvd_options_t options = Named("x");
  CHECK(hvd_grouped_allreduce(group, group, 2, &options) == HVD_OK);
}

void ChangeSets() {
  const int32_t rank = 0;
  int32_t set = 0;
  CHECK(hvd_add_process_set(&rank, 1, &set) != HVD_OK);
  CHECK_THAT(hvd_last_error(), Contains("ranks [0] are process set 0"));
}

void Join() {
  int32_t last = -1;
  CHECK(hvd_join(&last) == HVD_OK);
}

struct Neighbours {
  const char* name;
  void (*call)();
};

TEST_CASE("what looks like a name of hvd's own is a name like any other") {
  setenv("HVD_BATCH_WAIT_US", "1000000", 1);  // a second: nothing ends before somebody waits
  for (const Neighbours& one : {Neighbours{"hvd: join", Join},
                                {"hvd: process sets", ChangeSets},
                                {"unnamed call 1", CallUnnamed},
                                {"x (float64)", CallGroup}}) {
    INFO(one.name);
    const hvd::Session session;
    Number pending;
    const hvd_options_t options = Named(one.name);
    hvd_handle_t handle = 0;
    REQUIRE(hvd_allreduce_async(&pending.tensor, &pending.tensor, &options, &handle) == HVD_OK);
    one.call();
    CHECK(hvd_wait(handle) == HVD_OK);
  }
  unsetenv("HVD_BATCH_WAIT_US");
}

// One tensor of each type.
struct Mixed {
  static constexpr std::array<hvd_dtype_t, 10> kTypes = {
      HVD_UINT8,   HVD_INT8,    HVD_INT32,    HVD_INT64, HVD_FLOAT16,
      HVD_FLOAT32, HVD_FLOAT64, HVD_BFLOAT16, HVD_BOOL,  HVD_INT16};
  std::array<std::array<char, 8>, 10> memory{};
  std::vector<hvd_tensor_t> tensors;
  int64_t shape[1] = {1};

  Mixed() {
    for (size_t i = 0; i < kTypes.size(); ++i) {
      hvd_tensor_t tensor = HVD_TENSOR_INIT;
      tensor.data = memory[i].data();
      tensor.shape = shape;
      tensor.ndim = 1;
      tensor.dtype = kTypes[i];
      tensors.push_back(tensor);
    }
  }
  Mixed(const Mixed&) = delete;
};

TEST_CASE("unnamed groups of many types are forgotten when they are done") {
  const hvd::Session session;
  Mixed mixed;
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.op = HVD_MAX;
  const auto count = static_cast<int32_t>(mixed.tensors.size());
  for (int call = 0; call < 2500; ++call) {
    INFO(call);
    REQUIRE(hvd_grouped_allreduce(mixed.tensors.data(), mixed.tensors.data(), count, &options) ==
            HVD_OK);
  }
  CHECK(hvd_barrier(nullptr) == HVD_OK);
  Number x;
  for (int name = 0; name < 20000; ++name) {
    const std::string late = "late " + std::to_string(name);
    const hvd_options_t named = Named(late.c_str());
    REQUIRE(hvd_allreduce(&x.tensor, &x.tensor, &named) == HVD_OK);
  }
}

}  // namespace
