// SPDX-License-Identifier: Apache-2.0
// hvd_state_* and its kin without a launcher: commits are kept in this process's own memory.
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "tests/runtime/api/elastic/floats.h"

namespace {

class Alone {
 public:
  Alone() {
    unsetenv("HVD_RANK");
    unsetenv("HVD_LINK");
    REQUIRE(hvd_init(nullptr) == HVD_OK);
    REQUIRE(hvd_state_create(&state) == HVD_OK);
  }
  ~Alone() {
    hvd_state_destroy(state);
    hvd_shutdown();
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  void Add(const char* name, std::vector<float>* values, int32_t kind = HVD_STATE_REPLICATED) {
    REQUIRE(hvd::rt::AddFloats(state, name, values, kind) == HVD_OK);
  }
  std::string Bytes(const char* name) {
    const void* data = nullptr;
    size_t bytes = 0;
    REQUIRE(hvd_state_get(state, name, &data, &bytes) == HVD_OK);
    return data == nullptr ? "none" : std::string(static_cast<const char*>(data), bytes);
  }

  hvd_state_t* state = nullptr;
};

TEST_CASE("what was committed alone is restored, of every kind, across resets") {
  Alone alone;
  std::vector<float> weights(100000, 1), counts = {7}, noise = {3, 4};
  alone.Add("weights", &weights);
  alone.Add("counts", &counts, HVD_STATE_FIRST);
  alone.Add("noise", &noise, HVD_STATE_PRIVATE);
  hvd_epoch_t before = HVD_EPOCH_INIT;
  REQUIRE(hvd_epoch(&before) == HVD_OK);
  CHECK(before.size == 1);
  if (before.commit == 0) CHECK(hvd_state_restore(alone.state, nullptr) == HVD_ERR_INVALID);
  CHECK(alone.Bytes("epoch") == "none");
  REQUIRE(hvd_state_put(alone.state, "epoch", "one", 3) == HVD_OK);
  REQUIRE(hvd_state_sync(alone.state) == HVD_OK);
  uint64_t number = 0;
  for (uint64_t turn = 1; turn <= 5; ++turn) {
    weights.assign(weights.size(), static_cast<float>(turn));
    counts[0] = noise[1] = static_cast<float>(10 * turn);
    REQUIRE(hvd_state_commit(alone.state, &number) == HVD_OK);
    CHECK(number == before.commit + turn);
  }
  weights[5] = weights[99999] = counts[0] = noise[1] = -1;
  REQUIRE(hvd_state_put(alone.state, "epoch", "two", 3) == HVD_OK);
  hvd_epoch_t epoch = HVD_EPOCH_INIT;
  REQUIRE(hvd_reset(nullptr, &epoch) == HVD_OK);
  CHECK(epoch.number == before.number + 1);
  CHECK(epoch.commit == before.commit + 5);
  CHECK(epoch.survivors == 1);
  CHECK(epoch.is_new == 0);
  CHECK(epoch.sync == 0);
  CHECK(weights[5] == -1);
  REQUIRE(hvd_state_restore(alone.state, &number) == HVD_OK);
  CHECK(number == epoch.commit);
  CHECK(weights == std::vector<float>(weights.size(), 5));
  CHECK(counts[0] == 50);
  CHECK(noise == std::vector<float>{3, 50});
  CHECK(alone.Bytes("epoch") == "one");
  REQUIRE(hvd_state_commit(alone.state, &number) == HVD_OK);
  CHECK(number == epoch.commit + 1);
  CHECK(hvd_check_hosts() == HVD_OK);
  CHECK(hvd_slot() == 0);
  CHECK(hvd_is_elastic() == 0);
}

TEST_CASE("what a commit has and nobody has added is held, and committed again") {
  Alone alone;
  std::vector<float> weights = {1, 2}, momentum = {5, 6, 7};
  alone.Add("weights", &weights);
  alone.Add("momentum", &momentum);
  REQUIRE(hvd_state_commit(alone.state, nullptr) == HVD_OK);
  REQUIRE(hvd_state_remove(alone.state, "momentum") == HVD_OK);
  CHECK(hvd_state_remove(alone.state, "momentum") == HVD_ERR_INVALID);
  for (int turn = 0; turn < 2; ++turn) {
    REQUIRE(hvd_state_restore(alone.state, nullptr) == HVD_OK);
    int32_t count = 0;
    REQUIRE(hvd_state_count(alone.state, &count) == HVD_OK);
    REQUIRE(count == 2);
    hvd_state_entry_t entry = HVD_STATE_ENTRY_INIT;
    REQUIRE(hvd_state_entry(alone.state, 0, &entry) == HVD_OK);
    CHECK(std::string(entry.name) == "momentum");
    CHECK(entry.held == 1);
    REQUIRE(entry.tensor.ndim == 1);
    REQUIRE(entry.tensor.shape[0] == 3);
    CHECK(static_cast<const float*>(entry.tensor.data)[2] == 7);
    REQUIRE(hvd_state_commit(alone.state, nullptr) == HVD_OK);
  }
  std::vector<float> mine(3);
  alone.Add("momentum", &mine);
  CHECK(mine[2] == 0);
  REQUIRE(hvd_state_restore(alone.state, nullptr) == HVD_OK);
  CHECK(mine[2] == 7);
  hvd_state_entry_t entry = HVD_STATE_ENTRY_INIT;
  REQUIRE(hvd_state_entry(alone.state, 0, &entry) == HVD_OK);
  CHECK(entry.held == 0);
  CHECK(entry.tensor.data == mine.data());
  CHECK(hvd_state_entry(alone.state, 2, &entry) == HVD_ERR_INVALID);
}

TEST_CASE("entries are counted by name, whatever has been added and removed between two looks") {
  Alone alone;
  std::vector<float> values = {1, 2};
  const auto names = [&alone] {
    std::string all;
    hvd_state_entry_t entry = HVD_STATE_ENTRY_INIT;
    for (int32_t i = 0; hvd_state_entry(alone.state, i, &entry) == HVD_OK; ++i) all += entry.name;
    return all;
  };
  CHECK(names() == "");
  for (const char* name : {"d", "b"}) alone.Add(name, &values);
  CHECK(names() == "bd");
  for (const char* name : {"a", "c"}) alone.Add(name, &values);
  CHECK(names() == "abcd");
  REQUIRE(hvd_state_remove(alone.state, "b") == HVD_OK);
  CHECK(names() == "acd");
  REQUIRE(hvd_state_commit(alone.state, nullptr) == HVD_OK);
  REQUIRE(hvd_state_remove(alone.state, "d") == HVD_OK);
  CHECK(names() == "ac");
  REQUIRE(hvd_state_restore(alone.state, nullptr) == HVD_OK);
  CHECK(names() == "acd");
}

TEST_CASE("a commit of other shapes is refused, and nothing has changed") {
  Alone alone;
  std::vector<float> weights = {1, 2}, others = {3}, longer = {9, 9, 9};
  alone.Add("weights", &weights);
  alone.Add("others", &others);
  REQUIRE(hvd_state_commit(alone.state, nullptr) == HVD_OK);
  others[0] = 4;
  alone.Add("weights", &longer);
  CHECK(hvd_state_restore(alone.state, nullptr) == HVD_ERR_INVALID);
  const std::string why = hvd_last_error();
  CHECK(why.find("'weights', float32 [3]") != std::string::npos);
  CHECK(why.find("'weights', float32 [2]") != std::string::npos);
  CHECK(others[0] == 4);
  CHECK(longer[0] == 9);
}

TEST_CASE("a commit that was too large does not stand in the way of those that follow") {
  Alone alone;
  std::vector<float> weights = {1, 2};
  alone.Add("weights", &weights);
  REQUIRE(hvd_state_commit(alone.state, nullptr) == HVD_OK);
  // More than any process can map.
  const int64_t many = int64_t{1} << 58;
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = weights.data();
  tensor.shape = &many;
  tensor.ndim = 1;
  REQUIRE(hvd_state_add(alone.state, "too large", &tensor, HVD_STATE_REPLICATED) == HVD_OK);
  CHECK(hvd_state_commit(alone.state, nullptr) == HVD_ERR_UNSUPPORTED);
  REQUIRE(hvd_state_restore(alone.state, nullptr) == HVD_OK);
  REQUIRE(hvd_state_remove(alone.state, "too large") == HVD_OK);
  for (int turn = 0; turn < 2; ++turn) {
    weights[1] = 3;
    REQUIRE(hvd_state_commit(alone.state, nullptr) == HVD_OK);
    weights[1] = 4;
    REQUIRE(hvd_state_restore(alone.state, nullptr) == HVD_OK);
    CHECK(weights[1] == 3);
  }
}

TEST_CASE("an epoch is told to programs of an older header, too") {
  const Alone alone;
  hvd_epoch_t epoch = HVD_EPOCH_INIT;
  REQUIRE(hvd_epoch(&epoch) == HVD_OK);
  CHECK(epoch.is_over == 0);
  epoch = HVD_EPOCH_INIT;
  epoch.struct_size = offsetof(hvd_epoch_t, is_over);
  epoch.is_over = 7;
  REQUIRE(hvd_epoch(&epoch) == HVD_OK);
  CHECK(epoch.size == 1);
  CHECK(epoch.is_over == 7);
  epoch.struct_size = 8;
  CHECK(hvd_epoch(&epoch) == HVD_ERR_INVALID);
}

TEST_CASE("what is no state's is refused") {
  hvd_epoch_t epoch = HVD_EPOCH_INIT;
  CHECK(hvd_epoch(&epoch) == HVD_ERR_NOT_INITIALIZED);
  CHECK(hvd_check_hosts() == HVD_ERR_NOT_INITIALIZED);
  Alone alone;
  hvd_state_t* second = nullptr;
  CHECK(hvd_state_create(&second) == HVD_ERR_UNSUPPORTED);
  CHECK(second == nullptr);
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  float scalar = 1;
  tensor.data = &scalar;
  CHECK(hvd_state_add(alone.state, "x", &tensor, 3) == HVD_ERR_INVALID);
  CHECK(hvd_state_add(alone.state, "", &tensor, 0) == HVD_ERR_INVALID);
  CHECK(hvd_state_add(alone.state, "\x01x", &tensor, 0) == HVD_ERR_INVALID);
  CHECK(hvd_state_add(alone.state, "x", nullptr, 0) == HVD_ERR_INVALID);
  CHECK(hvd_state_add(nullptr, "x", &tensor, 0) == HVD_ERR_INVALID);
  REQUIRE(hvd_state_add(alone.state, "x", &tensor, 0) == HVD_OK);
  CHECK(hvd_state_put(alone.state, "x", "a", 1) == HVD_ERR_INVALID);
  REQUIRE(hvd_state_put(alone.state, "y", nullptr, 0) == HVD_OK);
  CHECK(hvd_state_add(alone.state, "y", &tensor, 0) == HVD_ERR_INVALID);
  REQUIRE(hvd_shutdown() == HVD_OK);
  CHECK(hvd_state_commit(alone.state, nullptr) == HVD_ERR_NOT_INITIALIZED);
  CHECK(hvd_state_sync(alone.state) == HVD_ERR_NOT_INITIALIZED);
  hvd_state_destroy(nullptr);
}

}  // namespace
