#include "runtime/session/local_store.h"

#include <catch2/catch.hpp>
#include <thread>

namespace hvd {
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

StoreAnswer Ask(LocalStore* store, const StoreRequest& request) {
  const auto call = store->Begin(request);
  const auto answered = (*call)->Await(std::nullopt);
  CHECK((answered.ok() && *answered));
  return (*call)->answer();
}

TEST_CASE("threads of a process without a launcher meet in its own store") {
  LocalStore store;
  std::thread sets([&] { Ask(&store, Of(StoreVerb::kSet, "k")); });
  CHECK(*Ask(&store, Of(StoreVerb::kGet, "k")).value == "v");
  sets.join();
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
}  // namespace hvd
