// SPDX-License-Identifier: Apache-2.0
#include "cli/front/child_answer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "base/descriptor.h"
#include "base/process_end.h"

namespace hvd::cli {
namespace {

using Catch::Matchers::Contains;

// Never ends by itself: a child that takes so long is ended.
[[noreturn]] void WaitForEver() {
  for (;;) pause();
}

void Say(int fd, const std::string& words) {
  CHECK(write(fd, words.data(), words.size()) == static_cast<ssize_t>(words.size()));
}

ChildAnswer Ask(const std::function<void(int)>& answer, const std::string& last = "",
                std::chrono::milliseconds patience = std::chrono::seconds(60)) {
  return AskChild({answer, last, patience});
}

TEST_CASE("a child's answer, and how it ended") {
  const ChildAnswer answer = Ask([](int fd) {
    Say(fd, "some words");
    _exit(7);
  });
  CHECK(answer.problem.empty());
  CHECK(answer.text == "some words");
  CHECK(DescribeEnd(answer.wait_status) == "exited with code 7");
  CHECK_THAT(DescribeEnd(Ask([](int) { raise(SIGKILL); }).wait_status), Contains("signal 9"));
}

TEST_CASE("an answer that says where it ends is not waited for any longer") {
  const ChildAnswer answer = Ask(
      [](int fd) {
        Say(fd, "words\nend\n");
        WaitForEver();
      },
      "end\n");
  CHECK(answer.problem.empty());
  CHECK(answer.text == "words\nend\n");
}

TEST_CASE("one that hangs or does not stop is ended, with all that it has started") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);  // held by the child and its own
  const ChildAnswer hanging = Ask(
      [](int) {
        if (fork() >= 0) WaitForEver();
      },
      "", std::chrono::milliseconds(50));
  CHECK(hanging.problem == "gives no answer within 0.05 s");
  writing.Reset();
  char byte = 0;
  CHECK(read(reading.get(), &byte, 1) == 0);  // nobody holds it

  const ChildAnswer endless = Ask([](int fd) {
    for (;;) Say(fd, std::string(4096, 'y'));
  });
  CHECK(endless.problem == "does not stop talking");
  CHECK(endless.text.size() < 128 << 10);
}

TEST_CASE("one that has closed its end and stays is not waited for without an end") {
  const ChildAnswer answer = Ask(
      [](int fd) {
        Say(fd, "words");
        close(fd);
        WaitForEver();
      },
      "", std::chrono::milliseconds(50));
  CHECK(answer.text == "words");
  CHECK_THAT(DescribeEnd(answer.wait_status), Contains("signal 9"));
}

}  // namespace
}  // namespace hvd::cli
