// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/local_store.h"

#include <catch2/catch.hpp>
#include <thread>

namespace hvd::rt {
namespace {

using Clock = std::chrono::steady_clock;

StoreRequest Of(StoreVerb verb, const std::string& key, int64_t timeout_us = kStoreForever) {
  StoreRequest request;
  request.verb = verb;
  request.keys = {key};
  request.timeout_us = timeout_us;
  request.value = std::make_shared<const std::string>("v");
  return request;
}

// Asks the store, on any thread, so it checks nothing itself. Without an answer: the refusal.
StoreAnswer Ask(LocalStore* store, const StoreRequest& request) {
  const auto call = store->Begin(request);
  const auto answered = (*call)->Await(std::nullopt);
  StoreAnswer none;
  none.outcome = StoreOutcome::kRefused;
  return answered.ok() && *answered ? (*call)->answer() : none;
}

TEST_CASE("threads of a process without a launcher meet in its own store") {
  LocalStore store;
  StoreAnswer set;
  std::thread sets([&] { set = Ask(&store, Of(StoreVerb::kSet, "k")); });
  const StoreAnswer got = Ask(&store, Of(StoreVerb::kGet, "k"));
  sets.join();
  CHECK(set.outcome == StoreOutcome::kDone);
  REQUIRE(got.value != nullptr);
  CHECK(*got.value == "v");
}

TEST_CASE("a local wait ends with its own time, though nobody else asks anything") {
  LocalStore store;
  CHECK(Ask(&store, Of(StoreVerb::kGet, "k", 1000)).outcome == StoreOutcome::kTimedOut);
  CHECK(Ask(&store, Of(StoreVerb::kGet, "k", 0)).outcome == StoreOutcome::kTimedOut);
}

TEST_CASE("a local wait can be looked at, and given up") {
  LocalStore store;
  auto call = store.Begin(Of(StoreVerb::kGet, "k"));
  CHECK_FALSE(*(*call)->Await(Clock::now()));
  CHECK_FALSE(*(*call)->Await(Clock::now() + std::chrono::milliseconds(1)));
  auto other = store.Begin(Of(StoreVerb::kGet, "k"));
  (*call).reset();
  Ask(&store, Of(StoreVerb::kSet, "k"));
  CHECK(*(*other)->Await(Clock::now()));
  CHECK(*(*other)->answer().value == "v");
}

}  // namespace
}  // namespace hvd::rt
