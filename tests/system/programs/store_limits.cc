// SPDX-License-Identifier: Apache-2.0
// How much the store takes, and what it says then.
#include <vector>

#include "tests/system/programs/store.h"

namespace {

constexpr size_t kMostValue = size_t{16} << 20;

}  // namespace

void Limits() {
  const std::string key(4096, static_cast<char>('a' + Rank()));
  hvd::store::set(key, "x");
  Check(hvd::store::get(key, kNow) == "x", "the longest key");
  MustFail(
      HVD_ERR_INVALID, [&] { hvd::store::set(key + "a", "x"); }, "at most 4096");
  MustFail(
      HVD_ERR_INVALID, [] { hvd::store::set("", "x"); }, "the key is empty");
  const std::string value(kMostValue, 'v');
  MustFail(
      HVD_ERR_INVALID, [&] { hvd::store::set("k", value + "v"); }, "at most 16777216");
  Check(hvd_store_set(nullptr, "", 0) == HVD_ERR_INVALID, "no key");
  Check(hvd_store_set("k", nullptr, 1) == HVD_ERR_INVALID, "no value");
  Check(hvd_store_wait(nullptr, 1, 0) == HVD_ERR_INVALID, "no keys");
  Check(hvd_store_wait(nullptr, 0, 0) == HVD_OK, "a wait for nothing");
  Check(hvd_store_end(nullptr, nullptr) == HVD_ERR_INVALID, "no call");
  const std::string number = "number." + std::to_string(Rank());
  hvd::store::add(number, INT64_MAX);
  MustFail(
      HVD_ERR_INVALID, [&] { hvd::store::add(number, 1); }, "would not fit 64 bits");
  Meet("limits");
}

// All ranks together set more than the store holds; room that is made is room for the next.
void Full() {
  const std::string value(kMostValue, 'v');
  const std::string mine = "full." + std::to_string(Rank()) + ".";
  int set = 0;
  hvd_status_t code = HVD_OK;
  for (; code == HVD_OK && set <= 16; ++set) {
    code = hvd_store_set((mine + std::to_string(set)).c_str(), value.data(), value.size());
  }
  Check(code == HVD_ERR_UNSUPPORTED, "17 of 16 MiB do not fit");
  const std::string why = hvd_last_error();
  Check(why.find("of 268435456 are taken") != std::string::npos, why);
  Meet("full");  // small keys still have room
  for (int i = 0; i < set; ++i) hvd::store::erase(mine + std::to_string(i));
  Meet("emptied");
  hvd::store::set(mine + "again", value);
}

// Calls that wait take no place of one another's, up to a limit that is said.
void ManyCalls() {
  std::vector<hvd_store_call_t*> calls;
  int32_t done = 0;
  hvd_store_call_t* call = nullptr;
  for (int i = 0; i < 257; ++i) {
    Check(hvd_store_begin_get("many", 100, &call) == HVD_OK, hvd_last_error());
    calls.push_back(call);
  }
  Check(hvd_store_wait_for(calls.back(), 100'000'000, &done) == HVD_OK && done == 1, "a refusal");
  Check(hvd_store_end(calls.back(), nullptr) == HVD_ERR_UNSUPPORTED, "one too many");
  const std::string why = hvd_last_error();
  Check(why.find("256 calls under way") != std::string::npos, why);
  calls.pop_back();
  Check(hvd_store_wait_for(calls.back(), 0, &done) == HVD_OK && done == 0, "others wait");
  Check(hvd_store_end(calls.back(), nullptr) == HVD_ERR_TIMEOUT, "one is given up");
  calls.pop_back();
  hvd::store::set("many", "now");
  for (hvd_store_call_t* each : calls) {
    Check(hvd_store_wait_for(each, 100'000'000, &done) == HVD_OK && done == 1, hvd_last_error());
    hvd_store_value_t value = {nullptr, 0};
    Check(hvd_store_end(each, &value) == HVD_OK && value.bytes == 3, "each gets its value");
    hvd_store_free(&value);
  }
}

// Over a slow link: neither way may its beats wait behind it.
void LargeToAnother() {
  const std::string value(size_t{4} << 20, static_cast<char>('a' + Rank()));
  hvd::store::set("large." + std::to_string(Rank()), value);
  const int other = (Rank() + 1) % Size();
  const std::string came = hvd::store::get("large." + std::to_string(other), kLong);
  Check(came == std::string(value.size(), static_cast<char>('a' + other)), "the other's value");
}
