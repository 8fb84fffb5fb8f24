// SPDX-License-Identifier: Apache-2.0
#include "cli/timeline/book.h"

#include <catch2/catch.hpp>
#include <memory>

#include "proto/wire.h"

namespace hvd::cli {
namespace {

// A host's ranks with rings that a test fills and drains.
struct Ranks {
  explicit Ranks(int count) {
    for (int rank = 0; rank < count; ++rank) rings.push_back(std::make_unique<TraceRing>());
    cursors.resize(count);
  }
  void Put(int rank, uint32_t tensor, std::string_view name, int64_t begin, int64_t end) {
    PutSpan(rings[rank].get(), {TraceActivity::kAllreduce, 0, tensor, begin, end, 256}, name);
  }
  std::string Drain() {
    std::string bytes;
    for (size_t rank = 0; rank < rings.size(); ++rank) {
      DrainRing(rings[rank].get(), &cursors[rank], rank, kTraceRingBytes, &bytes);
    }
    return bytes;
  }
  std::vector<std::unique_ptr<TraceRing>> rings;
  std::vector<TraceCursor> cursors;
};

std::string Taken(TimelineBook* book, int host, const std::string& bytes, int64_t offset_ns) {
  std::string text;
  book->Take(host, bytes, offset_ns, &text);
  return text;
}

const Topology kTwoHosts({{"alpha", 2}, {"beta", 1}});

TEST_CASE("Chrome: ranks are processes, tensors are their rows, clocks are ours") {
  TimelineBook book(kTwoHosts);
  const auto format = ChromeTimeline();
  std::string file = book.BeginFile(format.get(), 1'000'000, 1234567);
  Ranks alpha(2), beta(1);
  alpha.Put(1, 3, "grad \"a\"", 1'002'000, 1'005'500);
  beta.Put(0, 3, "x", 2'000'000, 2'001'000);
  file += Taken(&book, 0, alpha.Drain(), 0);
  file += Taken(&book, 1, beta.Drain(), -999'000);
  file += format->End();
  CHECK(
      file ==
      "[\n"
      R"({"name":"start_time_since_epoch_in_micros","ph":"M","pid":0,"args":{)"
      R"("start_time_since_epoch_in_micros":1234567}},)"
      "\n"
      R"json({"name":"process_name","ph":"M","pid":1,"args":{"name":"rank 1 (alpha)"}},)json"
      "\n"
      R"({"name":"process_sort_index","ph":"M","pid":1,"args":{"sort_index":1}},)"
      "\n"
      R"({"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"grad \"a\""}},)"
      "\n"
      R"({"name":"ALLREDUCE","ph":"X","pid":1,"tid":1,"ts":2.000,"dur":3.500,"args":{"bytes":256}},)"
      "\n"
      R"json({"name":"process_name","ph":"M","pid":2,"args":{"name":"rank 2 (beta)"}},)json"
      "\n"
      R"({"name":"process_sort_index","ph":"M","pid":2,"args":{"sort_index":2}},)"
      "\n"
      R"({"name":"thread_name","ph":"M","pid":2,"tid":1,"args":{"name":"x"}},)"
      "\n"
      R"({"name":"ALLREDUCE","ph":"X","pid":2,"tid":1,"ts":1.000,"dur":1.000,"args":{"bytes":256}})"
      "\n]\n");
}

TEST_CASE("a name without letters is a name") {
  TimelineBook book(kTwoHosts);
  const auto format = ChromeTimeline();
  book.BeginFile(format.get(), 0, 0);
  Ranks alpha(2);
  PutSpan(alpha.rings[0].get(), {TraceActivity::kNameEnd, 0, 1, 0, 0, 0}, "");
  alpha.Put(0, 1, "", 1000, 2000);
  CHECK(Taken(&book, 0, alpha.Drain(), 0).find(R"("args":{"name":""}})") != std::string::npos);
}

TEST_CASE("events come in order of time, the outer of two first") {
  TimelineBook book(kTwoHosts);
  const auto format = ChromeTimeline();
  book.BeginFile(format.get(), 0, 0);
  Ranks alpha(2);
  alpha.Put(0, 1, "t", 30'000, 40'000);
  alpha.Put(0, 1, "", 10'000, 15'000);
  alpha.Put(0, 1, "", 10'000, 20'000);
  const std::string text = Taken(&book, 0, alpha.Drain(), 0);
  const size_t outer = text.find(R"("ts":10.000,"dur":10.000)");
  const size_t inner = text.find(R"("ts":10.000,"dur":5.000)");
  const size_t later = text.find(R"("ts":30.000)");
  REQUIRE(later != std::string::npos);
  CHECK(outer < inner);
  CHECK(inner < later);
}

TEST_CASE("a number that gets another name gets another row, unnamed calls share one") {
  TimelineBook book(kTwoHosts);
  const auto format = ChromeTimeline();
  book.BeginFile(format.get(), 0, 0);
  Ranks alpha(2);
  alpha.Put(0, 1, "first", 1000, 2000);
  alpha.Put(0, 1, "second", 3000, 4000);
  alpha.Put(0, 2, "unnamed call 1", 5000, 6000);
  alpha.Put(0, 3, "unnamed call 2", 7000, 8000);
  const std::string text = Taken(&book, 0, alpha.Drain(), 0);
  CHECK(text.find(R"("tid":2,"ts":3.000)") != std::string::npos);
  CHECK(text.find(R"("tid":3,"ts":5.000)") != std::string::npos);
  CHECK(text.find(R"("tid":3,"ts":7.000)") != std::string::npos);
}

TEST_CASE("a tensor of a process set has a row of its own, with the set's number") {
  TimelineBook book(kTwoHosts);
  const auto format = ChromeTimeline();
  book.BeginFile(format.get(), 0, 0);
  Ranks alpha(2);
  alpha.Put(0, 1, "grad", 1000, 2000);
  for (const int32_t set : {3, 4}) {
    const TraceSpan span = {TraceActivity::kAllreduce, 1, 1, 1000 * set, 1000 * set, 256, set};
    PutSpan(alpha.rings[0].get(), span, "grad");
  }
  const std::string text = Taken(&book, 0, alpha.Drain(), 0);
  CHECK(text.find(R"("tid":1,"args":{"name":"grad"}})") != std::string::npos);
  CHECK(text.find(R"x("tid":2,"args":{"name":"grad (process set 3)"}})x") != std::string::npos);
  CHECK(text.find(R"x("tid":3,"args":{"name":"grad (process set 4)"}})x") != std::string::npos);
  CHECK(text.find(R"("tid":3,"ts":4.000)") != std::string::npos);
}

TEST_CASE("a second file names everything again") {
  TimelineBook book(kTwoHosts);
  const auto format = ChromeTimeline();
  book.BeginFile(format.get(), 0, 0);
  Ranks alpha(2);
  alpha.Put(0, 1, "t", 1000, 2000);
  CHECK_FALSE(Taken(&book, 0, alpha.Drain(), 0).empty());
  book.EndFile();
  alpha.Put(0, 1, "", 3000, 4000);
  CHECK(Taken(&book, 0, alpha.Drain(), 0).empty());
  book.BeginFile(format.get(), 0, 0);
  alpha.Put(0, 1, "", 5000, 6000);
  const std::string text = Taken(&book, 0, alpha.Drain(), 0);
  CHECK(text.find("rank 0 (alpha)") != std::string::npos);
  CHECK(text.find(R"("name":"t")") != std::string::npos);
}

TEST_CASE("missing events and scribbled streams are told or ignored, never believed") {
  TimelineBook book(kTwoHosts);
  const auto format = ChromeTimeline();
  book.BeginFile(format.get(), 0, 0);
  Ranks alpha(2);
  for (size_t i = 0; i < kTraceSlots + 5; ++i) alpha.Put(0, 1, "", 1000, 2000);
  CHECK(Taken(&book, 0, alpha.Drain(), 0).find("5 events are missing") != std::string::npos);
  CHECK(book.lost() == 5);
  CHECK(book.given_up().empty());
  CHECK(Taken(&book, 1, std::string(100, '\xff'), 0).empty());
  CHECK(book.given_up() == "the timeline of host beta ends early: its events make no sense");
  Ranks beta(1);
  beta.Put(0, 1, "late", 1000, 2000);
  CHECK(Taken(&book, 1, beta.Drain(), 0).empty());
}

TEST_CASE("a rank that names ever new tensors is given up, which is said once") {
  TimelineBook book(kTwoHosts);
  const auto format = ChromeTimeline();
  book.BeginFile(format.get(), 0, 0);
  Ranks alpha(2);
  for (uint32_t tensor = 0; tensor < 270'000; ++tensor) {
    alpha.Put(1, tensor * 3, "t", 1000, 2000);
    if (tensor % 50'000 == 0) (void)Taken(&book, 0, alpha.Drain(), 0);
  }
  (void)Taken(&book, 0, alpha.Drain(), 0);
  CHECK(book.given_up() ==
        "the timeline of rank 1 ends early: it has named more tensors than there can be");
  alpha.Put(1, 3, "", 3000, 4000);
  CHECK(Taken(&book, 0, alpha.Drain(), 0).empty());
  alpha.Put(0, 3, "t", 3000, 4000);
  CHECK_FALSE(Taken(&book, 0, alpha.Drain(), 0).empty());
}

TEST_CASE("numbers that are named again are no new ones") {
  TimelineBook book(kTwoHosts);
  const auto format = ChromeTimeline();
  book.BeginFile(format.get(), 0, 0);
  Ranks alpha(2);
  for (uint32_t i = 0; i < 300'000; ++i) {
    alpha.Put(1, i % 9000, i % 2 == 0 ? "a" : "b", 1000, 2000);
    if (i % 50'000 == 0) (void)Taken(&book, 0, alpha.Drain(), 0);
  }
  CHECK_FALSE(Taken(&book, 0, alpha.Drain(), 0).empty());
  CHECK(book.given_up().empty());
}

// The packets of a Perfetto file, each as field → value of its track event or descriptor.
struct Decoded {
  int descriptors = 0, begins = 0, ends = 0;
  std::vector<uint64_t> times, tracks;
  std::string names;
};
Decoded DecodePerfetto(const std::string& file) {
  Decoded decoded;
  WireReader packets(file);
  while (packets.Next()) {
    REQUIRE(packets.field() == 1);
    WireReader packet(packets.bytes());
    while (packet.Next()) {
      if (packet.field() == 8) decoded.times.push_back(packet.number());
      WireReader inner(packet.bytes());
      if (packet.field() == 60) {
        ++decoded.descriptors;
        while (inner.Next()) {
          if (inner.field() == 2) decoded.names += std::string(inner.bytes()) + ";";
          if (inner.field() != 3) continue;
          WireReader process(inner.bytes());
          while (process.Next()) {
            if (process.field() == 6) decoded.names += std::string(process.bytes()) + ";";
          }
        }
      }
      if (packet.field() == 11) {
        while (inner.Next()) {
          if (inner.field() == 9) ++(inner.number() == 1 ? decoded.begins : decoded.ends);
          if (inner.field() == 11) decoded.tracks.push_back(inner.number());
          if (inner.field() == 23) decoded.names += std::string(inner.bytes()) + ";";
        }
        REQUIRE(inner.ok());
      }
    }
    REQUIRE(packet.ok());
  }
  REQUIRE(packets.ok());
  return decoded;
}

TEST_CASE("Perfetto: a track a rank and a track a tensor, slices by begin and end") {
  TimelineBook book(kTwoHosts);
  const auto format = TimelineFormatFor("run.pftrace");
  std::string file = book.BeginFile(format.get(), 500, 0);
  Ranks alpha(2);
  alpha.Put(1, 1, "grad", 1000, 2500);
  alpha.Put(1, 1, "", 3000, 3100);
  file += Taken(&book, 0, alpha.Drain(), 100) + format->End();
  const Decoded decoded = DecodePerfetto(file);
  CHECK(decoded.descriptors == 2);
  CHECK(decoded.begins == 2);
  CHECK(decoded.ends == 2);
  CHECK(decoded.times == std::vector<uint64_t>{1100, 2600, 3100, 3200});
  CHECK(decoded.tracks == std::vector<uint64_t>(4, (uint64_t{2} << 32) + 1));
  CHECK(decoded.names == "rank 1 (alpha);grad;ALLREDUCE;ALLREDUCE;");
}

TEST_CASE("rows belong to the ranks of the newest epoch, and each epoch is marked") {
  TimelineBook book{Topology()};
  const auto format = ChromeTimeline();
  std::string file = book.BeginFile(format.get(), 0, 0);
  Ranks lost(1), late(1);
  std::string text;
  book.BeginEpoch({1, Topology({{"alpha", 1}, {"beta", 1}}), {0, 1}, 1'000}, &text);
  CHECK(text.find(R"({"name":"epoch 1","ph":"i","s":"g","pid":0,"tid":0,"ts":1.000})") !=
        text.npos);
  lost.Put(0, 1, "x", 2'000, 3'000);
  CHECK(Taken(&book, 1, lost.Drain(), 0).find(R"json("args":{"name":"rank 1 (beta)"})json") !=
        std::string::npos);
  // A host of a new number has the place of the one that is lost.
  text.clear();
  book.BeginEpoch({2, Topology({{"alpha", 1}, {"beta", 1}}), {0, 7}, 4'000}, &text);
  CHECK(text.find("\"epoch 2\"") != text.npos);
  lost.Put(0, 1, "", 5'000, 6'000);
  CHECK(Taken(&book, 1, lost.Drain(), 0).empty());
  late.Put(0, 1, "y", 7'000, 8'000);
  const std::string events = Taken(&book, 7, late.Drain(), 0);
  CHECK(events.find(R"("name":"ALLREDUCE","ph":"X","pid":1)") != events.npos);
}

TEST_CASE("the format follows from the name's end") {
  CHECK(TimelineFormatFor("a.json")->Begin(0, 0).substr(0, 1) == "[");
  CHECK(TimelineFormatFor("a.perfetto-trace")->End().empty());
}

}  // namespace
}  // namespace hvd::cli
