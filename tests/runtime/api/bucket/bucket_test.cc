// SPDX-License-Identifier: Apache-2.0
// hvd_bucket_* and hvd::Gradients in a job of one rank: the order of calls, and what is refused.
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "hvd/hvd.hpp"

namespace {

using Catch::Matchers::Contains;

TEST_CASE("gradients are reduced step after step, in any order of readiness") {
  hvd::Session session;
  hvd::GradientOptions options;
  options.chunk_bytes = 256;
  hvd::Gradients<float> gradients({3, 100, 0, 50, 7}, options);
  REQUIRE(gradients.size() == 5);
  const std::vector<std::vector<size_t>> orders = {
      {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}};
  for (const auto& order : orders) {
    for (const size_t i : order) {
      if (i != 2) gradients[i][0] = static_cast<float>(i + 1);
      gradients.ready(i);
    }
    gradients.wait();
    CHECK(gradients[4][0] == 5);
    CHECK(gradients[1][0] == 2);
  }
}

TEST_CASE("ready twice and waiting too early are refused, and change nothing") {
  hvd::Session session;
  hvd::GradientOptions options;
  options.name = "model";
  hvd::Gradients<float> gradients(std::vector<size_t>(20, 4), options);
  CHECK_THROWS_WITH(gradients.wait(),
                    Contains("'model'") && Contains("0, 1, 2, 3, 4, 5, 6, 7 and 12 more"));
  for (size_t i = 0; i < 20; ++i) {
    if (i != 3) gradients.ready(i);
  }
  CHECK_THROWS_WITH(gradients.ready(5), Contains("tensor 5 of bucket 'model' is ready already"));
  CHECK_THROWS_WITH(gradients.ready(20), Contains("no tensor 20"));
  CHECK_THROWS_WITH(gradients.wait(), Contains("not ready are 3"));
  gradients.ready(3);
  gradients.wait();
  gradients.ready(5);  // the next step
}

TEST_CASE("threads make gradients ready together") {
  hvd::Session session;
  hvd::GradientOptions options;
  options.chunk_bytes = 1024;
  hvd::Gradients<int32_t> gradients(std::vector<size_t>(64, 32), options);
  for (int step = 0; step < 50; ++step) {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = t; i < 64; i += 4) {
          gradients[i][31] = static_cast<int32_t>(i);
          gradients.ready(i);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    gradients.wait();
  }
  CHECK(gradients[63][31] == 63);
}

TEST_CASE("a program built before buckets had a device has them in the CPU's memory") {
  hvd::Session session;
  hvd_bucket_options_t options = HVD_BUCKET_OPTIONS_INIT;
  const int64_t counts[] = {1};
  hvd_bucket_t* bucket = nullptr;
  options.struct_size = offsetof(hvd_bucket_options_t, device_type);
  options.device_type = 77;  // what lies behind such a struct
  REQUIRE(hvd_bucket_create(counts, 1, &options, &bucket) == HVD_OK);
  void* view = nullptr;
  REQUIRE(hvd_bucket_view(bucket, 0, &view) == HVD_OK);
  *static_cast<float*>(view) = 3;
  CHECK(hvd_bucket_ready(bucket, 0) == HVD_OK);
  CHECK(hvd_bucket_wait_on(bucket, nullptr) == HVD_OK);
  CHECK(*static_cast<float*>(view) == 3);
  hvd_bucket_destroy(bucket);
  options.struct_size = sizeof options;
  CHECK(hvd_bucket_create(counts, 1, &options, &bucket) == HVD_ERR_INVALID);
  CHECK_THAT(hvd_last_error(), Contains("device_type is the unknown 77"));
  options.device_type = HVD_CPU;
  options.device_id = 1;
  CHECK(hvd_bucket_create(counts, 1, &options, &bucket) == HVD_ERR_INVALID);
}

TEST_CASE("a bucket outlives its session and is used in the next") {
  hvd_bucket_t* bucket = nullptr;
  const int64_t counts[] = {10};
  CHECK(hvd_bucket_create(counts, 1, nullptr, &bucket) == HVD_ERR_NOT_INITIALIZED);
  CHECK(bucket == nullptr);
  REQUIRE(hvd_init(nullptr) == HVD_OK);
  REQUIRE(hvd_bucket_create(counts, 1, nullptr, &bucket) == HVD_OK);
  REQUIRE(hvd_shutdown() == HVD_OK);
  CHECK(hvd_bucket_ready(bucket, 0) == HVD_ERR_NOT_INITIALIZED);
  REQUIRE(hvd_init(nullptr) == HVD_OK);
  CHECK(hvd_bucket_ready(bucket, 0) == HVD_OK);  // the failed one left it not ready
  CHECK(hvd_bucket_wait(bucket) == HVD_OK);
  hvd_bucket_ready(bucket, 0);
  hvd_bucket_destroy(bucket);  // with a chunk under way
  REQUIRE(hvd_shutdown() == HVD_OK);
}

TEST_CASE("arguments that make no sense") {
  hvd::Session session;
  hvd_bucket_t* bucket = nullptr;
  const int64_t counts[] = {10, -1};
  CHECK(hvd_bucket_create(counts, 1, nullptr, nullptr) == HVD_ERR_INVALID);
  CHECK(hvd_bucket_create(nullptr, 1, nullptr, &bucket) == HVD_ERR_INVALID);
  CHECK(hvd_bucket_create(counts, -1, nullptr, &bucket) == HVD_ERR_INVALID);
  CHECK(hvd_bucket_create(counts, 2, nullptr, &bucket) == HVD_ERR_INVALID);
  CHECK_THAT(hvd_last_error(), Contains("tensor 1 cannot have -1"));
  hvd_bucket_options_t options = HVD_BUCKET_OPTIONS_INIT;
  options.dtype = 17;
  CHECK(hvd_bucket_create(counts, 1, &options, &bucket) == HVD_ERR_INVALID);
  options = HVD_BUCKET_OPTIONS_INIT;
  options.struct_size = 3;
  CHECK(hvd_bucket_create(counts, 1, &options, &bucket) == HVD_ERR_INVALID);
  options = HVD_BUCKET_OPTIONS_INIT;
  options.flags = 2;
  CHECK(hvd_bucket_create(counts, 1, &options, &bucket) == HVD_ERR_INVALID);
  options = HVD_BUCKET_OPTIONS_INIT;
  hvd_options_t reduction = HVD_OPTIONS_INIT;
  reduction.struct_size = 0;
  options.reduction = &reduction;
  CHECK(hvd_bucket_create(counts, 1, &options, &bucket) == HVD_ERR_INVALID);
  CHECK(bucket == nullptr);
  const int64_t huge[] = {int64_t{1} << 50};
  CHECK(hvd_bucket_create(huge, 1, nullptr, &bucket) == HVD_ERR_UNSUPPORTED);
  CHECK(hvd_bucket_ready(nullptr, 0) == HVD_ERR_INVALID);
  CHECK(hvd_bucket_wait(nullptr) == HVD_ERR_INVALID);
  hvd_bucket_destroy(nullptr);
  // None at all is a bucket that is always done.
  REQUIRE(hvd_bucket_create(nullptr, 0, nullptr, &bucket) == HVD_OK);
  CHECK(hvd_bucket_wait(bucket) == HVD_OK);
  void* data = nullptr;
  CHECK(hvd_bucket_view(bucket, 0, &data) == HVD_ERR_INVALID);
  hvd_bucket_destroy(bucket);
}

}  // namespace
