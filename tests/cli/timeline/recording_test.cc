// SPDX-License-Identifier: Apache-2.0
#include "cli/timeline/recording.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>

namespace hvd::cli {
namespace {

constexpr int kSpans = 100'000;

// A directory of the test's own.
struct Directory {
  Directory() { REQUIRE(mkdtemp(path) != nullptr); }
  ~Directory() { std::filesystem::remove_all(path); }
  char path[32] = "/tmp/hvd_timeline_XXXXXX";
};

v1::OutputChunk Spans() {
  const auto ring = std::make_unique<TraceRing>();
  for (int i = 0; i < kSpans; ++i) {
    PutSpan(ring.get(), {TraceActivity::kAllreduce, 0, 1, i, i + 1, 4}, i == 0 ? "t" : "");
  }
  TraceCursor cursor;
  v1::OutputChunk chunk;
  DrainRing(ring.get(), &cursor, 0, kTraceRingBytes, chunk.mutable_data());
  return chunk;
}

// Until `take` has an outcome; its edge is awaited.
template <class Take>
absl::Status Await(const DriverTimeline& timeline, Take take) {
  while (true) {
    if (std::optional<absl::Status> outcome = take()) return *outcome;
    pollfd event{timeline.event_fd(), POLLIN, 0};
    if (poll(&event, 1, 10'000) != 1) return absl::DeadlineExceededError("no edge");
    eventfd_t edges = 0;
    eventfd_read(event.fd, &edges);
  }
}

TEST_CASE("a timeline has ended when all of it is in the file") {
  const Directory directory;
  const std::string path = std::string(directory.path) + "/t.json";
  DriverTimeline timeline(Topology({{"alpha", 1}}));
  timeline.AddHost();
  timeline.Begin(path, 0);
  REQUIRE(Await(timeline, [&] { return timeline.TakeBegun(1); }).ok());
  timeline.Heard(0, BeatRoundTrip());
  v1::OutputChunk chunk = Spans();
  timeline.Take(0, &chunk);
  CHECK_FALSE(timeline.TakeEnded(2));
  timeline.BeginEnd();
  CHECK_FALSE(timeline.TakeEnded(2));
  v1::OutputChunk last;
  last.set_end(true);
  timeline.Take(0, &last);
  REQUIRE(Await(timeline, [&] { return timeline.TakeEnded(3); }).ok());
  CHECK_FALSE(timeline.on());
  CHECK_FALSE(timeline.ending());
  std::ifstream file(path);
  int events = 0;
  std::string line, end;
  for (; std::getline(file, line); end = line) events += line.find("\"ph\":\"X\"") != line.npos;
  CHECK(events == kSpans);
  CHECK(end == "]");
}

}  // namespace
}  // namespace hvd::cli
