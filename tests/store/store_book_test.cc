// SPDX-License-Identifier: Apache-2.0
#include "store/store_book.h"

#include <catch2/catch.hpp>

namespace hvd {
namespace {

using Catch::Matchers::Contains;
using Replies = std::vector<StoreBook::Reply>;

StoreRequest Of(StoreVerb verb, std::vector<std::string> keys) {
  StoreRequest request;
  request.verb = verb;
  request.keys = std::move(keys);
  return request;
}

StoreRequest Set(const std::string& key, const std::string& value) {
  StoreRequest request = Of(StoreVerb::kSet, {key});
  request.value = std::make_shared<const std::string>(value);
  return request;
}

StoreRequest Get(const std::string& key, int64_t timeout_us = kStoreForever) {
  StoreRequest request = Of(StoreVerb::kGet, {key});
  request.timeout_us = timeout_us;
  return request;
}

StoreRequest Wait(std::vector<std::string> keys, int64_t timeout_us = kStoreForever) {
  StoreRequest request = Of(StoreVerb::kWait, std::move(keys));
  request.timeout_us = timeout_us;
  return request;
}

StoreRequest Add(const std::string& key, int64_t delta) {
  StoreRequest request = Of(StoreVerb::kAdd, {key});
  request.delta = delta;
  return request;
}

StoreRequest CompareSet(const std::string& key, const std::string& expected,
                        const std::string& desired) {
  StoreRequest request = Set(key, desired);
  request.verb = StoreVerb::kCompareSet;
  request.expected = expected;
  return request;
}

constexpr StoreCaller kMe{0, 1};
constexpr StoreCaller kOther{1, 1};

// The answer to a request that does not wait.
StoreAnswer Ask(StoreBook* book, const StoreRequest& request) {
  const Replies replies = book->Ask(kMe, request, 0);
  REQUIRE(replies.size() == 1);
  REQUIRE(replies[0].to == kMe);
  return replies[0].answer;
}

TEST_CASE("what was set is there, bytes of any kind, until it is set again or deleted") {
  StoreBook book;
  const std::string bytes("\0\xff\n", 3);
  CHECK(Ask(&book, Set("k", bytes)).outcome == StoreOutcome::kDone);
  CHECK(*Ask(&book, Get("k")).value == bytes);
  Ask(&book, Set("k", ""));
  CHECK(Ask(&book, Get("k")).value->empty());
  CHECK(Ask(&book, Of(StoreVerb::kCount, {})).number == 1);
  CHECK(Ask(&book, Of(StoreVerb::kDelete, {"k"})).number == 1);
  CHECK(Ask(&book, Of(StoreVerb::kDelete, {"k"})).number == 0);
  CHECK(Ask(&book, Of(StoreVerb::kCount, {})).number == 0);
  CHECK(book.bytes() == 0);
}

TEST_CASE("a get waits for its key, and all who wait share the value") {
  StoreBook book;
  CHECK(book.Ask(kOther, Get("k"), 0).empty());
  CHECK(book.Ask({1, 2}, Get("k"), 0).empty());
  CHECK(book.Ask({1, 3}, Get("another"), 0).empty());
  const Replies replies = book.Ask(kMe, Set("k", "v"), 5);
  REQUIRE(replies.size() == 3);
  CHECK(replies[1].to == kOther);
  CHECK(replies[2].to == StoreCaller{1, 2});
  CHECK(*replies[1].answer.value == "v");
  CHECK(replies[1].answer.value == replies[2].answer.value);
  CHECK(book.waiters() == 1);
}

TEST_CASE("add and compare_set bring a key, too") {
  StoreBook book;
  book.Ask(kOther, Get("n"), 0);
  CHECK(book.Ask(kMe, Add("n", 2), 0).size() == 2);
  book.Ask(kOther, Get("c"), 0);
  CHECK(book.Ask(kMe, CompareSet("c", "not this", "x"), 0).size() == 1);
  CHECK(book.Ask(kMe, CompareSet("c", "", "x"), 0).size() == 2);
}

TEST_CASE("a get that does not wait says at once that nobody has set the key") {
  StoreBook book;
  const StoreAnswer answer = Ask(&book, Get("k", 0));
  CHECK(answer.outcome == StoreOutcome::kTimedOut);
  CHECK_THAT(answer.text, Contains("nobody has set 'k' yet"));
  CHECK(book.waiters() == 0);
}

TEST_CASE("a wait ends with its time, and names what is missing") {
  StoreBook book;
  Ask(&book, Set("there", ""));
  book.Ask(kMe, Wait({"a", "there", "b"}, 2'000'000), 10);
  book.Ask(kOther, Get("c", 1'000'000), 10);
  CHECK(book.deadline() == 11);
  CHECK(book.Tick(10.5).empty());
  const Replies first = book.Tick(11);
  REQUIRE(first.size() == 1);
  CHECK(first[0].to == kOther);
  CHECK(first[0].answer.outcome == StoreOutcome::kTimedOut);
  CHECK_THAT(first[0].answer.text, Contains("hvd_store_get: nobody has set 'c' within 1 s"));
  CHECK(book.deadline() == 12);
  const Replies second = book.Tick(20);
  REQUIRE(second.size() == 1);
  CHECK_THAT(second[0].answer.text, Contains("hvd_store_wait: nobody has set 'a', 'b' within"));
  CHECK(book.deadline() == std::numeric_limits<double>::infinity());
}

TEST_CASE("of many missing keys a few are named") {
  StoreBook book;
  const StoreAnswer answer = Ask(&book, Wait({"a", "b", "c", "d", "e", "f"}, 0));
  CHECK_THAT(answer.text, Contains("'a', 'b', 'c', 'd' and 2 more"));
}

TEST_CASE("all keys of a wait are there at one time, whatever came and went") {
  StoreBook book;
  CHECK(book.Ask(kOther, Wait({"a", "b", "a"}), 0).empty());
  CHECK(book.Ask(kMe, Set("a", ""), 0).size() == 1);
  CHECK(book.Ask(kMe, Of(StoreVerb::kDelete, {"a"}), 0).size() == 1);
  CHECK(book.Ask(kMe, Set("b", ""), 0).size() == 1);
  const Replies replies = book.Ask(kMe, Set("a", ""), 0);
  REQUIRE(replies.size() == 2);
  CHECK(replies[1].to == kOther);
  CHECK(book.waiters() == 0);
  CHECK(Ask(&book, Wait({})).outcome == StoreOutcome::kDone);
}

TEST_CASE("who is gone is not answered") {
  StoreBook book;
  book.Ask(kMe, Get("k", 1000), 0);
  book.Ask({1, 1}, Get("k"), 0);
  book.Ask({1, 2}, Wait({"k", "l"}), 0);
  book.Ask({2, 1}, Get("k"), 0);
  book.Forget(kMe);
  book.ForgetHost(1);
  CHECK(book.waiters() == 1);
  CHECK(book.Tick(1e9).empty());
  const Replies replies = book.Ask({3, 1}, Set("k", ""), 0);
  REQUIRE(replies.size() == 2);
  CHECK(replies[1].to == StoreCaller{2, 1});
  book.Forget({2, 1});  // nothing is left of it
}

TEST_CASE("add counts in decimal text, up and down") {
  StoreBook book;
  CHECK(Ask(&book, Add("n", 5)).number == 5);
  CHECK(Ask(&book, Add("n", -7)).number == -2);
  CHECK(*Ask(&book, Get("n")).value == "-2");
  Ask(&book, Set("n", "40"));
  CHECK(Ask(&book, Add("n", 2)).number == 42);
  Ask(&book, Set("n", "4 apples"));
  const StoreAnswer wrong = Ask(&book, Add("n", 1));
  CHECK(wrong.outcome == StoreOutcome::kInvalid);
  CHECK_THAT(wrong.text, Contains("hvd_store_add: the value of 'n' is no decimal number"));
  Ask(&book, Set("n", std::to_string(INT64_MAX)));
  CHECK_THAT(Ask(&book, Add("n", 1)).text, Contains("would not fit 64 bits"));
  CHECK(*Ask(&book, Get("n")).value == std::to_string(INT64_MAX));
}

TEST_CASE("compare_set sets only what is as expected, and says what is there then") {
  StoreBook book;
  CHECK(Ask(&book, CompareSet("k", "old", "new")).value == nullptr);
  CHECK(*Ask(&book, CompareSet("k", "", "first")).value == "first");
  CHECK(*Ask(&book, CompareSet("k", "", "second")).value == "first");
  CHECK(*Ask(&book, CompareSet("k", "first", "third")).value == "third");
}

TEST_CASE("a full store refuses what makes it larger, and names its limit") {
  const size_t room = 2 * (kKeyCostBytes + 1) + 10;
  StoreBook book(room);
  CHECK(Ask(&book, Set("a", "12345")).outcome == StoreOutcome::kDone);
  CHECK(Ask(&book, Set("b", "12345")).outcome == StoreOutcome::kDone);
  CHECK(book.bytes() == room);
  const StoreAnswer full = Ask(&book, Set("b", "123456"));
  CHECK(full.outcome == StoreOutcome::kFull);
  CHECK_THAT(full.text, Contains("the job's store is full: 'b' needs 1 bytes, " +
                                 std::to_string(room) + " of " + std::to_string(room)));
  CHECK(*Ask(&book, Get("b")).value == "12345");
  CHECK(Ask(&book, Add("new", 1)).outcome == StoreOutcome::kFull);
  CHECK(Ask(&book, CompareSet("a", "12345", "1234567")).outcome == StoreOutcome::kFull);
  CHECK(Ask(&book, Set("a", "1")).outcome == StoreOutcome::kDone);
  CHECK(Ask(&book, Set("b", "123456")).outcome == StoreOutcome::kDone);
}

TEST_CASE("what is wrong by itself is refused by the book, too") {
  StoreBook book;
  CHECK(Ask(&book, StoreRequest()).outcome == StoreOutcome::kInvalid);
  CHECK(Ask(&book, Set("", "")).outcome == StoreOutcome::kInvalid);
  CHECK(book.keys() == 0);
}

}  // namespace
}  // namespace hvd
