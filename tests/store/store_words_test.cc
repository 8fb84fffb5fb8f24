// SPDX-License-Identifier: Apache-2.0
#include "store/store_words.h"

#include <catch2/catch.hpp>

#include "hvd/v1/link_b.pb.h"

namespace hvd {
namespace {

StoreValue Value(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

TEST_CASE("protobuf reads a store request as it was written, and the other way round") {
  StoreRequest request;
  request.verb = StoreVerb::kCompareSet;
  request.keys = {"a", std::string("b\0c", 3)};
  request.expected = std::string("\0\xff", 2);
  request.delta = -3;
  request.timeout_us = kStoreForever;
  request.value = Value(std::string("\n\0x", 3));
  const std::string bytes = EncodeStoreRequest(request).Whole();
  v1::StoreRequest read;
  REQUIRE(read.ParseFromString(bytes));
  CHECK(read.verb() == 4);
  CHECK(read.keys(1) == request.keys[1]);
  CHECK(read.expected() == request.expected);
  CHECK(read.delta() == -3);
  CHECK(read.timeout_us() == -1);
  CHECK(read.value() == *request.value);
  StoreRequest back;
  REQUIRE(DecodeStoreRequest(read.SerializeAsString(), &back));
  CHECK(back.verb == request.verb);
  CHECK(back.keys == request.keys);
  CHECK(back.expected == request.expected);
  CHECK(back.delta == -3);
  CHECK(back.timeout_us == kStoreForever);
  CHECK(*back.value == *request.value);
  CHECK(VerbOf(bytes) == StoreVerb::kCompareSet);
}

TEST_CASE("an empty value is a value, none is none") {
  StoreAnswer answer;
  answer.number = INT64_MIN;
  StoreAnswer back;
  REQUIRE(DecodeStoreAnswer(EncodeStoreAnswer(answer).Whole(), &back));
  CHECK(back.value == nullptr);
  CHECK(back.number == INT64_MIN);
  answer.value = Value("");
  v1::StoreAnswer read;
  REQUIRE(read.ParseFromString(EncodeStoreAnswer(answer).Whole()));
  CHECK(read.has_value());
  REQUIRE(DecodeStoreAnswer(read.SerializeAsString(), &back));
  REQUIRE(back.value != nullptr);
  CHECK(back.value->empty());
}

TEST_CASE("an answer's value is sent from where it lies") {
  StoreAnswer answer;
  answer.value = Value(std::string(1 << 20, 'x'));
  const StoreBytes bytes = EncodeStoreAnswer(answer);
  CHECK(bytes.body == answer.value);
  CHECK(bytes.head.size() < 32);
  CHECK(bytes.size() == bytes.Whole().size());
}

TEST_CASE("bytes that are no message of the store's are none") {
  StoreRequest request;
  CHECK_FALSE(DecodeStoreRequest("", &request));
  CHECK_FALSE(DecodeStoreRequest("\x08\x09", &request));           // a verb that nobody knows
  CHECK_FALSE(DecodeStoreRequest("\x08\x01\x12\x05x", &request));  // cut short
  StoreAnswer answer;
  CHECK_FALSE(DecodeStoreAnswer("\x08\x40", &answer));
  CHECK(VerbOf("\x12\x01x") == StoreVerb::kNone);
  CHECK(VerbOf("\x08\x7f") == StoreVerb::kNone);
}

}  // namespace
}  // namespace hvd
