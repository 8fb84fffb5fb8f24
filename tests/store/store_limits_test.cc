// SPDX-License-Identifier: Apache-2.0
#include "store/store_limits.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

using Catch::Matchers::Contains;

StoreRequest Setting(size_t key_bytes, size_t value_bytes) {
  StoreRequest request;
  request.verb = StoreVerb::kSet;
  request.keys = {std::string(key_bytes, 'k')};
  request.value = std::make_shared<const std::string>(value_bytes, 'v');
  return request;
}

std::string Complaint(const StoreRequest& request) {
  return std::string(CheckStoreRequest(request).message());
}

TEST_CASE("keys and values are taken up to their limits, which the error names") {
  CHECK(CheckStoreRequest(Setting(kMostKeyBytes, kMostValueBytes)).ok());
  CHECK_THAT(Complaint(Setting(kMostKeyBytes + 1, 0)),
             Contains("hvd_store_set") && Contains("has 4097 bytes; at most 4096"));
  CHECK_THAT(Complaint(Setting(1, kMostValueBytes + 1)),
             Contains("the value of 'k' has 16777217 bytes; at most 16777216"));
  CHECK_THAT(Complaint(Setting(0, 1)), Contains("the key is empty"));
}

TEST_CASE("what is expected has the limit of a value") {
  StoreRequest request = Setting(1, 1);
  request.verb = StoreVerb::kCompareSet;
  request.expected.assign(kMostValueBytes + 1, 'e');
  CHECK_THAT(Complaint(request), Contains("hvd_store_compare_set") && Contains("at most 16777216"));
}

TEST_CASE("a wait takes many keys, but not any number of bytes") {
  StoreRequest request;
  request.verb = StoreVerb::kWait;
  CHECK(CheckStoreRequest(request).ok());
  request.keys.assign(kMostWaitBytes / kMostKeyBytes, std::string(kMostKeyBytes, 'k'));
  CHECK(CheckStoreRequest(request).ok());
  request.keys.push_back("one more");
  CHECK_THAT(Complaint(request), Contains("one call takes 1048576"));
}

TEST_CASE("a request that lacks its key or its value is refused") {
  StoreRequest request;
  CHECK_FALSE(CheckStoreRequest(request).ok());
  request.verb = StoreVerb::kGet;
  CHECK_FALSE(CheckStoreRequest(request).ok());
  request.verb = StoreVerb::kSet;
  request.keys = {"k"};
  CHECK_THAT(Complaint(request), Contains("it takes a value"));
}

TEST_CASE("the largest request fits a message") {
  StoreRequest request = Setting(kMostKeyBytes, kMostValueBytes);
  request.verb = StoreVerb::kCompareSet;
  request.expected.assign(kMostValueBytes, 'e');
  REQUIRE(CheckStoreRequest(request).ok());
  CHECK(EncodeStoreRequest(request).size() <= kMostStoreMessage);
}

}  // namespace
}  // namespace hvd
