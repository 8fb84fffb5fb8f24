// SPDX-License-Identifier: Apache-2.0
#include "daemon/connections/frames.h"

#include <catch2/catch.hpp>

namespace hvd::daemon {
namespace {

TEST_CASE("frames are found however the bytes come") {
  const std::string bytes = Frame("one") + Frame("") + Frame(std::string(1000, 'x'));
  for (size_t piece : {size_t{1}, size_t{3}, bytes.size()}) {
    FrameCutter cutter;
    std::vector<std::string> messages;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      cutter.Take(std::string_view(bytes).substr(at, piece));
      std::string message;
      while (cutter.Next(&message)) messages.push_back(message);
    }
    CHECK(messages == std::vector<std::string>{"one", "", std::string(1000, 'x')});
  }
}

TEST_CASE("a length is four bytes, the lowest first") {
  CHECK(Frame("abc") == std::string("\x03\0\0\0abc", 7));
}

TEST_CASE("an absurd length breaks the stream for good") {
  FrameCutter cutter;
  cutter.Take("GET / HTTP/1.1\r\n");
  std::string message;
  CHECK(!cutter.Next(&message));
  CHECK(cutter.broken());
}

}  // namespace
}  // namespace hvd::daemon
