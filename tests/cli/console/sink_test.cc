// SPDX-License-Identifier: Apache-2.0
#include "cli/console/sink.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "tests/support/patience.h"

namespace hvd::cli {
namespace {

// A sink before a full pipe of one page, with more to write.
class StuckSink {
 public:
  StuckSink() {
    signal(SIGPIPE, SIG_IGN);  // as the console has it
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) abort();
    read_end.Reset(ends[0]);
    write_end.Reset(ends[1]);
    page = static_cast<size_t>(fcntl(write_end.get(), F_SETPIPE_SZ, 4096));
    sink.emplace(write_end.get(), "stdout", OutputPrinter(&topology, {}), bell.get());
    for (int i = 0; i < 1000; ++i) sink->printer().Print(0, false, "a line of some bytes\n", false);
    all = sink->backlog();
    sink->Pump();
    // Its writer fills the pipe and waits.
    for (int i = 0; i < PatientMs(5000) && Fill() < page / 2; ++i) poll(nullptr, 0, 1);
    sink->Age(0, 10);
  }
  size_t Fill() const { return all - sink->backlog(); }
  void ReadByte() {
    char byte;
    if (read(read_end.get(), &byte, 1) != 1) abort();
  }

  Topology topology{{{"alpha", 1}}};
  Descriptor read_end, write_end, bell{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::optional<ConsoleSink> sink;
  size_t all = 0, page = 0;
};

TEST_CASE("a reader that takes one byte in a while is no stuck one") {
  StuckSink stuck;
  for (int i = 0; i < 10; ++i) {
    stuck.sink->Age(4, 5);
    CHECK(stuck.sink->open());
    stuck.ReadByte();
  }
  stuck.sink->Age(4, 5);
  stuck.sink->Age(4, 5);
  CHECK(stuck.sink->open());
  stuck.sink->Age(4, 5);
  CHECK(!stuck.sink->open());
}

TEST_CASE("what a stuck reader does not get is counted, and what comes after") {
  StuckSink stuck;
  const size_t left = stuck.sink->backlog();
  stuck.sink->Age(6, 5);
  CHECK(!stuck.sink->open());
  CHECK(stuck.sink->done());
  CHECK(stuck.sink->lost() == left);
  stuck.sink->Lose(100);
  CHECK(stuck.sink->lost() == left + 100);
}

}  // namespace
}  // namespace hvd::cli
