#include "runtime/engine/frame_channel.h"

#include <catch2/catch.hpp>

#include "runtime/transport/loopback/loopback_transport.h"

namespace hvd {
namespace {

TEST_CASE("messages of any length arrive whole and in order") {
  LoopbackWorld network(2);
  auto a = network.TransportFor(0), b = network.TransportFor(1);
  FrameChannel sends(a.get(), 1, 1), receives(b.get(), 0, 1);
  std::vector<std::string> messages;
  for (const size_t length : {1, 495, 496, 497, 512, 5000, 200000, 3}) {
    messages.push_back(std::string(length, static_cast<char>('a' + messages.size())));
  }
  for (const std::string& message : messages) REQUIRE(sends.Send(message).ok());
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
      FrameChannel late(a.get(), 1, 1, earlier);
      REQUIRE(late.Send(std::string(length, 'x')).ok());
      FrameChannel sends(a.get(), 1, 1, later), receives(b.get(), 0, 1, later);
      CHECK(Next(&receives, a.get(), b.get()).empty());
      REQUIRE(sends.Send("hello").ok());
      CHECK(Next(&receives, a.get(), b.get()) == "hello");
    }
  }
}

}  // namespace
}  // namespace hvd
