// SPDX-License-Identifier: Apache-2.0
#include "cli/link/frame.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

namespace hvd::cli {
namespace {

TEST_CASE("a frame arrives whole, with its descriptors") {
  Descriptor one, other;
  REQUIRE(MakeFramePair(&one, &other));
  Frame frame;
  CHECK(ReceiveFrame(other.get(), &frame) == FrameResult::kWouldBlock);
  frame.kind = FrameKind::kOutput;
  frame.is_stderr = true;
  frame.index = 7;
  frame.number = 1ull << 40;
  frame.text = std::string(kMaxFrameText, 'x');
  frame.fds.emplace_back(open("/dev/null", O_RDONLY));
  REQUIRE(SendFrame(one.get(), frame) == FrameResult::kDone);
  Frame got;
  REQUIRE(ReceiveFrame(other.get(), &got) == FrameResult::kDone);
  CHECK(got.kind == FrameKind::kOutput);
  CHECK(got.is_stderr);
  CHECK_FALSE(got.end);
  CHECK(got.index == 7);
  CHECK(got.number == 1ull << 40);
  CHECK(got.text == frame.text);
  REQUIRE(got.fds.size() == 1);
  CHECK((fcntl(got.fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a full socket says so, and the end is seen on both sides") {
  Descriptor one, other;
  REQUIRE(MakeFramePair(&one, &other));
  Frame frame;
  frame.text = std::string(1000, 'x');
  int sent = 0;
  while (SendFrame(one.get(), frame) == FrameResult::kDone) ++sent;
  CHECK(sent > 10);
  one.Reset();
  Frame got;
  for (int i = 0; i < sent; ++i) REQUIRE(ReceiveFrame(other.get(), &got) == FrameResult::kDone);
  CHECK(ReceiveFrame(other.get(), &got) == FrameResult::kGone);
  CHECK(SendFrame(other.get(), frame) == FrameResult::kGone);
}

TEST_CASE("the last words of a peer that ends without reading ours arrive") {
  Descriptor one, other;
  REQUIRE(MakeFramePair(&one, &other));
  Frame frame;
  REQUIRE(SendFrame(other.get(), frame) == FrameResult::kDone);
  frame.text = "last words";
  REQUIRE(SendFrame(one.get(), frame) == FrameResult::kDone);
  one.Reset();
  Frame got;
  REQUIRE(ReceiveFrame(other.get(), &got) == FrameResult::kDone);
  CHECK(got.text == "last words");
  CHECK(ReceiveFrame(other.get(), &got) == FrameResult::kGone);
}

TEST_CASE("bytes that are no frame end the talk") {
  Descriptor one, other;
  REQUIRE(MakeFramePair(&one, &other));
  REQUIRE(send(one.get(), "abc", 3, 0) == 3);
  Frame got;
  CHECK(ReceiveFrame(other.get(), &got) == FrameResult::kGone);
}

}  // namespace
}  // namespace hvd::cli
