// Asynchronous calls and their handles, in a job of one rank.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "hvd/hvd.h"

namespace {

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

bool DoneWithin(hvd_handle_t handle, std::chrono::seconds time) {
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
    CHECK(DoneWithin(handle, std::chrono::seconds(10)));
    CHECK(hvd_wait(handle) == HVD_OK);
  }
}

}  // namespace
