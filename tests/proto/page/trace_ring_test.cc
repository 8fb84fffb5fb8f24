// SPDX-License-Identifier: Apache-2.0
#include "proto/page/trace_ring.h"

#include <catch2/catch.hpp>
#include <memory>
#include <thread>

namespace hvd {
namespace {

TraceSpan Span(uint32_t tensor, int64_t begin, int64_t end) {
  return {TraceActivity::kAllreduce, 3, tensor, begin, end, 4096};
}

// Drains everything, in pieces of `piece` bytes.
std::vector<TraceRecord> Read(TraceRing* ring, TraceCursor* cursor, size_t piece = 1 << 20) {
  std::string bytes;
  DrainRing(ring, cursor, 1, kTraceRingBytes, &bytes);
  TraceDecoder decoder;
  std::vector<TraceRecord> records;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    REQUIRE(decoder.Take(std::string_view(bytes).substr(at, piece), &records));
  }
  return records;
}

TEST_CASE("a span and its name go through the ring") {
  const auto ring = std::make_unique<TraceRing>();
  TraceCursor cursor;
  const std::string name = "a.gradient.with.a.name.longer.than.one.slot";
  REQUIRE(PutSpan(ring.get(), Span(7, 100, 250), name));
  REQUIRE(PutSpan(ring.get(), Span(7, 300, 310), ""));
  for (const size_t piece : {size_t{1}, size_t{31}, size_t{1000}}) {
    TraceCursor fresh;
    const auto records = Read(ring.get(), &fresh, piece);
    REQUIRE(records.size() == 3);
    CHECK(records[0].name == name);
    CHECK(records[0].span.tensor == 7);
    CHECK(records[1].span.activity == TraceActivity::kAllreduce);
    CHECK(records[1].span.region == 3);
    CHECK(records[1].span.begin_ns == 100);
    CHECK(records[1].span.end_ns == 250);
    CHECK(records[1].span.bytes == 4096);
    CHECK(records[2].span.begin_ns == 300);
    CHECK(records[2].local_rank == 1);
  }
  CHECK(Read(ring.get(), &cursor).size() == 3);
  CHECK(Read(ring.get(), &cursor).empty());
}

TEST_CASE("a full ring counts what it cannot take, and goes on when it is read") {
  const auto ring = std::make_unique<TraceRing>();
  TraceCursor cursor;
  size_t taken = 0;
  for (size_t i = 0; i < kTraceSlots + 10; ++i) taken += PutSpan(ring.get(), Span(1, 1, 2), "");
  CHECK(taken == kTraceSlots);
  auto records = Read(ring.get(), &cursor);
  REQUIRE(records.size() == kTraceSlots + 1);
  CHECK(records[0].lost == 10);
  for (size_t lap = 0; lap < 3; ++lap) {
    for (size_t i = 0; i < kTraceSlots; ++i) REQUIRE(PutSpan(ring.get(), Span(1, 1, 2), ""));
    CHECK(Read(ring.get(), &cursor).size() == kTraceSlots);
  }
}

TEST_CASE("several threads write whole events") {
  const auto ring = std::make_unique<TraceRing>();
  std::vector<std::thread> writers;
  for (uint32_t writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&ring, writer] {
      const std::string name(60, static_cast<char>('a' + writer));
      for (int i = 0; i < 1000; ++i) PutSpan(ring.get(), Span(writer, i, i + writer), name);
    });
  }
  TraceCursor cursor;
  TraceDecoder decoder;
  size_t spans = 0;
  const auto look = [&] {
    std::string bytes;
    DrainRing(ring.get(), &cursor, 0, 1 << 20, &bytes);
    std::vector<TraceRecord> records;
    REQUIRE(decoder.Take(bytes, &records));
    for (const TraceRecord& record : records) {
      const uint32_t writer = record.span.tensor;
      if (record.name.empty()) {
        CHECK(record.span.end_ns == record.span.begin_ns + writer);
        ++spans;
      } else {
        CHECK(record.name == std::string(60, static_cast<char>('a' + writer)));
      }
    }
  };
  for (std::thread& writer : writers) {
    look();
    writer.join();
  }
  look();
  CHECK(spans == 4000);
}

TEST_CASE("a name goes with its process set's number, whatever region the set has") {
  const auto ring = std::make_unique<TraceRing>();
  TraceSpan span = Span(7, 100, 250);
  for (const int32_t set : {70000, 0, 2}) {
    span.set = set;
    REQUIRE(PutSpan(ring.get(), span, std::string(1000, 'n')));
  }
  for (const size_t piece : {size_t{1}, size_t{1000}}) {
    TraceCursor fresh;
    const auto records = Read(ring.get(), &fresh, piece);
    REQUIRE(records.size() == 6);
    CHECK(records[0].span.set == 70000);
    CHECK(records[0].name == std::string(240, 'n'));
    CHECK(records[1].span.end_ns == 250);
    CHECK(records[2].span.set == 0);
    CHECK(records[4].span.set == 2);
  }
}

TEST_CASE("a name without end is cut") {
  const auto ring = std::make_unique<TraceRing>();
  TraceCursor cursor;
  for (int i = 0; i < 1000; ++i) {
    PutSpan(ring.get(), {TraceActivity::kNameText, 0, 1, 0x4141414141414141, 0, 0}, "");
  }
  PutSpan(ring.get(), {TraceActivity::kNameEnd, 0, 1, 0, 0, 0}, "");
  const auto records = Read(ring.get(), &cursor);
  REQUIRE(records.size() == 1);
  CHECK(records[0].name == std::string(240, 'A'));
}

TEST_CASE("a scribbled stream is refused") {
  TraceDecoder decoder;
  std::vector<TraceRecord> records;
  CHECK_FALSE(decoder.Take(std::string(64, '\xff'), &records));
}

TEST_CASE("activities have Horovod's names") {
  CHECK(ActivityName(TraceActivity::kAllreduce) == "ALLREDUCE");
  CHECK(ActivityName(static_cast<TraceActivity>(static_cast<int>(TraceActivity::kNegotiate) +
                                                static_cast<int>(TraceActivity::kAlltoall))) ==
        "NEGOTIATE_ALLTOALL");
  CHECK(ActivityName(TraceActivity::kQueue) == "QUEUE");
  CHECK(ActivityName(TraceActivity::kLastActivity) == "DEVICE_COPY");
  CHECK(ActivityName(TraceActivity::kNameEnd).empty());
  CHECK(ActivityName(TraceActivity::kSetNumber).empty());
}

}  // namespace
}  // namespace hvd
