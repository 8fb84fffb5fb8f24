// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/frame_channel.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>

#include "runtime/transport/loopback/loopback_transport.h"
#include "runtime/transport/tcp/tcp_transport.h"
#include "tests/support/patience.h"

namespace hvd::rt {
namespace {

FrameChannel::Message Shared(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

TEST_CASE("messages of any length arrive whole and in order") {
  LoopbackWorld network(2);
  auto a = network.TransportFor(0), b = network.TransportFor(1);
  FrameChannel sends({a.get(), 1, 1}), receives({b.get(), 0, 1});
  std::vector<std::string> messages;
  for (const size_t length : {1, 495, 496, 497, 512, 5000, 200000, 3}) {
    messages.push_back(std::string(length, static_cast<char>('a' + messages.size())));
  }
  for (const std::string& message : messages) REQUIRE(sends.Send(Shared(message)).ok());
  for (const std::string& message : messages) {
    auto received = receives.Receive();
    for (int i = 0; i < 1000 && received.ok() && !received->has_value(); ++i) {
      a->Progress();
      b->Progress();
      received = receives.Receive();
    }
    REQUIRE(received.ok());
    REQUIRE(received->has_value());
    CHECK(**received == message);
  }
  CHECK_FALSE(*sends.HasUnsent());
}

// Whatever a receive finds within a few looks.
std::string Next(FrameChannel* channel, Transport* a, Transport* b) {
  for (int i = 0; i < 100; ++i) {
    auto received = channel->Receive();
    REQUIRE(received.ok());
    if (received->has_value()) return **received;
    a->Progress();
    b->Progress();
  }
  return "";
}

TEST_CASE("what an earlier user of the channel has sent too late is not read by the next") {
  const uint64_t earlier = 7;
  // The last has the same tag where a transport keeps 32 bits of it.
  for (const uint64_t later : {uint64_t{8}, (uint64_t{1} << 32) + 7}) {
    for (const size_t length : {3u, 496u, 497u, 100000u}) {
      LoopbackWorld network(2);
      auto a = network.TransportFor(0), b = network.TransportFor(1);
      FrameChannel late({a.get(), 1, 1, earlier});
      REQUIRE(late.Send(Shared(std::string(length, 'x'))).ok());
      FrameChannel sends({a.get(), 1, 1, later}), receives({b.get(), 0, 1, later});
      CHECK(Next(&receives, a.get(), b.get()).empty());
      REQUIRE(sends.Send(Shared("hello")).ok());
      CHECK(Next(&receives, a.get(), b.get()) == "hello");
    }
  }
}

// Every byte tells where it lies.
std::string Long(size_t length, unsigned seed) {
  std::string message(length, 0);
  for (char& c : message) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return message;
}

// Two ranks that talk over TCP, in one thread.
struct TcpPair {
  TcpPair() {
    std::vector<std::string> addresses;
    for (int r = 0; r < 2; ++r) {
      auto made = MakeTcpTransport(
          {.secret = std::string(32, 's'), .rank = r, .size = 2, .net_devices = "lo"});
      REQUIRE(made.ok());
      transports[r] = *std::move(made);
      addresses.push_back(*transports[r]->Address());
    }
    for (auto& transport : transports) REQUIRE(transport->Connect(addresses).ok());
  }
  void Progress() {
    for (auto& transport : transports) {
      if (transport != nullptr) transport->Progress();
    }
  }
  std::unique_ptr<Transport> transports[2];
};

TEST_CASE("messages larger than any part pass one another in both directions") {
  TcpPair tcp;
  for (const size_t part : {size_t{100000}, FramePlace().part_bytes}) {
    const uint64_t generation = part;
    FrameChannel a({tcp.transports[0].get(), 1, 1, generation, part});
    FrameChannel b({tcp.transports[1].get(), 0, 1, generation, part});
    const std::string up = Long((20 << 20) + 17, 1), down = Long((24 << 20) + 496, 2);
    REQUIRE(a.Send(Shared(up)).ok());
    REQUIRE(b.Send(Shared(down)).ok());
    REQUIRE(a.Send(Shared("after")).ok());
    std::vector<std::string> at_a, at_b;
    const auto hear = [](FrameChannel* channel, std::vector<std::string>* heard) {
      auto received = channel->Receive();
      REQUIRE(received.ok());
      if (received->has_value()) heard->push_back(**std::move(received));
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(PatientMs(60000));
    while ((at_a.empty() || at_b.size() < 2) && std::chrono::steady_clock::now() < end) {
      tcp.Progress();
      hear(&a, &at_a);
      hear(&b, &at_b);
    }
    REQUIRE(at_b.size() == 2);
    CHECK((at_b[0] == up && at_b[1] == "after"));
    CHECK((at_a.size() == 1 && at_a[0] == down));
    CHECK_FALSE(*a.HasUnsent());
    CHECK_FALSE(*b.HasUnsent());
  }
}

TEST_CASE("of a peer that goes in the middle of its message no half comes, and the end is heard") {
  TcpPair tcp;
  const FramePlace at_b{.transport = tcp.transports[1].get(), .channel = 1, .part_bytes = 1 << 20};
  FrameChannel b(at_b);
  {
    FrameChannel a(
        {.transport = tcp.transports[0].get(), .peer = 1, .channel = 1, .part_bytes = 1 << 20});
    REQUIRE(a.Send(Shared(Long(64 << 20, 3))).ok());
    // Far from all of it: what the sockets hold, and more.
    for (int i = 0; i < 20; ++i) {
      tcp.Progress();
      const auto received = b.Receive();
      REQUIRE((received.ok() && !received->has_value()));
    }
    CHECK(*a.HasUnsent());
    tcp.transports[0]->Stop();
  }
  tcp.transports[0] = nullptr;
  // That the peer is gone others find out: until the epoch ends nothing comes.
  absl::StatusOr<std::optional<std::string>> received = b.Receive();
  for (int i = 0; i < 10000 && received.ok() && !received->has_value(); ++i) {
    tcp.Progress();
    received = b.Receive();
  }
  CHECK((!received.ok() || !received->has_value()));
  tcp.transports[1]->Stop();
  CHECK_FALSE(b.Receive().ok());
  CHECK_FALSE(b.Send(Shared("answer")).ok());
}

TEST_CASE("room is made for what comes, not for what a frame claims") {
  LoopbackWorld network(2);
  auto a = network.TransportFor(0), b = network.TransportFor(1);
  FrameChannel receives({.transport = b.get(), .channel = 1, .part_bytes = 1000});
  std::string frame(FrameChannel::kFrameBytes, 0);
  const uint64_t length = uint64_t{1} << 50;  // no host has that
  std::memcpy(frame.data(), &length, sizeof(length));
  REQUIRE(a->Send(1, {1, 0}, frame.data(), frame.size()).ok());
  const std::string part(1000, 'x');
  for (int i = 0; i < 100; ++i) {
    const auto received = receives.Receive();
    CHECK((received.ok() && !received->has_value()));
    REQUIRE(a->Send(1, {1, 0}, part.data(), part.size()).ok());
  }
}

TEST_CASE("what has been sent is let go of with the next message") {
  LoopbackWorld network(2);
  auto a = network.TransportFor(0);
  FrameChannel sends({.transport = a.get(), .peer = 1, .channel = 1});
  FrameChannel::Message first = Shared("first");
  const std::weak_ptr<const std::string> seen = first;
  REQUIRE(sends.Send(std::exchange(first, nullptr)).ok());
  REQUIRE(sends.Send(Shared("second")).ok());
  CHECK(seen.expired());
}

}  // namespace
}  // namespace hvd::rt
