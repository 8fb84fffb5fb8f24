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
  for (const size_t length : {1, 503, 504, 505, 512, 5000, 200000, 3}) {
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

}  // namespace
}  // namespace hvd
