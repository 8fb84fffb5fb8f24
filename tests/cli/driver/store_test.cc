// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/store.h"

#include <catch2/catch.hpp>
#include <limits>

namespace hvd::cli {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

// Hosts whose hvdd asks, and takes what comes back.
class Hosts {
 public:
  explicit Hosts(int count)
      : store_([this](int host, const v1::StoreChunk& chunk) { Come(host, chunk); }),
        ports_(count) {
    for (int host = 0; host < count; ++host) store_.AddHost();
  }

  void Ask(StoreCaller from, const StoreRequest& request, double now = 0) {
    ports_[from.host].sender.Put({from.call, EncodeStoreRequest(request)});
    Send(from.host, now);
  }
  void TellGone(StoreCaller caller) {
    ports_[caller.host].sender.Put({caller.call, {}});
    Send(caller.host, 0);
  }
  // Returns the answer to the call; null: there is none yet.
  const StoreAnswer* Answer(StoreCaller caller) const {
    const auto found = answers_.find(caller);
    return found == answers_.end() ? nullptr : &found->second;
  }
  // Acknowledges what has come, and so on until all is there; returns how many chunks came.
  int TakeAll(int host, double now) {
    int chunks = 0;
    for (int before = -1; before != ports_[host].chunks; ++chunks) {
      before = ports_[host].chunks;
      v1::StoreChunk chunk;
      chunk.set_taken(ports_[host].receiver.taken());
      store_.Take(host, chunk, now += 0.001);
    }
    return chunks;
  }
  DriverStore* store() { return &store_; }
  uint64_t came(int host) const { return ports_[host].receiver.taken(); }

 private:
  struct Port {
    ParcelSender sender;
    ParcelReceiver receiver;
    int chunks = 0;
  };

  void Send(int host, double now) {
    while (ports_[host].sender.waiting() > 0) {
      v1::StoreChunk chunk;
      chunk.set_data(ports_[host].sender.Take({}));
      ports_[host].sender.Acked(std::numeric_limits<uint64_t>::max(), {});
      store_.Take(host, chunk, now);
    }
  }
  void Come(int host, const v1::StoreChunk& chunk) {
    Port& port = ports_[host];
    ++port.chunks;
    port.receiver.Take(chunk.data());
    uint64_t call = 0;
    std::string_view message;
    while (port.receiver.Next(&call, &message)) {
      CHECK(DecodeStoreAnswer(message, &answers_[{host, call}]));
    }
  }

  DriverStore store_;
  std::vector<Port> ports_;
  std::map<StoreCaller, StoreAnswer> answers_;
};

StoreRequest Of(StoreVerb verb, const std::string& key, int64_t timeout_us = kStoreForever) {
  StoreRequest request;
  request.verb = verb;
  request.keys = {key};
  request.timeout_us = timeout_us;
  return request;
}

StoreRequest Set(const std::string& key, std::string value) {
  StoreRequest request = Of(StoreVerb::kSet, key);
  request.value = std::make_shared<const std::string>(std::move(value));
  return request;
}

TEST_CASE("a value that one host sets is another's, also one that waits for it") {
  Hosts hosts(2);
  hosts.Ask({1, 7}, Of(StoreVerb::kGet, "k"));
  CHECK(hosts.Answer({1, 7}) == nullptr);
  hosts.Ask({0, 7}, Set("k", "v"));
  REQUIRE(hosts.Answer({0, 7}) != nullptr);
  CHECK(hosts.Answer({0, 7})->outcome == StoreOutcome::kDone);
  REQUIRE(hosts.Answer({1, 7}) != nullptr);
  CHECK(*hosts.Answer({1, 7})->value == "v");
}

TEST_CASE("a wait's time is over in the driver's clock") {
  Hosts hosts(1);
  CHECK(hosts.store()->deadline() == kForever);
  hosts.Ask({0, 1}, Of(StoreVerb::kGet, "k", 500'000), 100);
  CHECK(hosts.store()->deadline() == 100.5);
  hosts.store()->Tick(100.5);
  REQUIRE(hosts.Answer({0, 1}) != nullptr);
  CHECK(hosts.Answer({0, 1})->outcome == StoreOutcome::kTimedOut);
  CHECK(hosts.store()->deadline() == kForever);
}

TEST_CASE("who is gone, or whose host is, is forgotten") {
  Hosts hosts(2);
  hosts.Ask({0, 1}, Of(StoreVerb::kGet, "k", 1000));
  hosts.Ask({1, 1}, Of(StoreVerb::kGet, "k", 1000));
  hosts.TellGone({0, 1});
  hosts.store()->HostEnded(1);
  CHECK(hosts.store()->deadline() == kForever);
  hosts.Ask({0, 2}, Set("k", "v"));
  CHECK(hosts.Answer({0, 1}) == nullptr);
  CHECK(hosts.Answer({1, 1}) == nullptr);
}

TEST_CASE("a large value goes as fast as the host says that it comes, and small ones to others") {
  Hosts hosts(2);
  hosts.Ask({0, 1}, Set("large", std::string(50'000, 'x')));
  for (int i = 0; i < 20; ++i)
    hosts.Ask({1, 10 + static_cast<uint64_t>(i)}, Of(StoreVerb::kGet, "large"));
  CHECK(hosts.came(1) < 100'000);
  hosts.Ask({0, 2}, Set("small", "s"));
  CHECK(hosts.Answer({0, 2}) != nullptr);
  CHECK(hosts.TakeAll(1, 1) > 3);
  CHECK(hosts.came(1) > 20 * 50'000);
  REQUIRE(hosts.Answer({1, 29}) != nullptr);
  CHECK(hosts.Answer({1, 29})->value->size() == 50'000);
}

TEST_CASE("what is no request is refused, and its caller told") {
  Hosts hosts(1);
  ParcelSender sender;
  StoreParcel parcel;
  parcel.call = 5;
  parcel.message.head = "\xff\xff";
  sender.Put(parcel);
  v1::StoreChunk chunk;
  chunk.set_data(sender.Take({}));
  hosts.store()->Take(0, chunk, 0);
  REQUIRE(hosts.Answer({0, 5}) != nullptr);
  CHECK(hosts.Answer({0, 5})->outcome == StoreOutcome::kInvalid);
}

}  // namespace
}  // namespace hvd::cli
