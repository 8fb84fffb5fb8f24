// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/watch/timeline.h"

#include <catch2/catch.hpp>
#include <memory>

#include "runtime/engine/watch/metrics.h"
#include "runtime/session/session.h"

namespace hvd::rt {
namespace {

std::vector<TraceRecord> Drain(HostPage* page) {
  std::string bytes;
  TraceCursor cursor;
  DrainRing(&WatchOf(page, 0).trace, &cursor, 0, 1 << 20, &bytes);
  std::vector<TraceRecord> records;
  TraceDecoder decoder;
  REQUIRE(decoder.Take(bytes, &records));
  return records;
}

TEST_CASE("the timeline tells a tensor's name once, and again when its number has another") {
  const auto memory = HostMemory::Alone(HostPageBytes(1));
  REQUIRE(memory.ok());
  HostPage* page = (*memory)->page();
  page->tracing = 1;
  Timeline timeline({page, 0, 2, 300});
  timeline.Record(Timeline::Operation(RequestKind::kAllreduce), {5, "grad.1", 64}, 10, 20);
  timeline.Record(Timeline::Operation(RequestKind::kAllreduce), {5, "grad.1", 64}, 30, 40);
  timeline.Record(Timeline::Operation(RequestKind::kAllgather), {5, "other", 8}, 50, 60);
  const auto records = Drain(page);
  REQUIRE(records.size() == 5);
  CHECK(records[0].name == "grad.1");
  CHECK(records[0].span.set == 300);
  CHECK(records[1].span.region == 2);
  CHECK(records[2].span.begin_ns == 30);
  CHECK(records[3].name == "other");
  CHECK(ActivityName(records[4].span.activity) == "ALLGATHER");
}

TEST_CASE("while it is off, the timeline gives no stamps and takes no spans that began then") {
  const auto memory = HostMemory::Alone(HostPageBytes(1));
  REQUIRE(memory.ok());
  HostPage* page = (*memory)->page();
  Timeline timeline({page, 0, 0});
  CHECK(timeline.Stamp() == 0);
  const int64_t off = timeline.Stamp();
  page->tracing = 1;
  CHECK(timeline.Stamp() > 0);
  timeline.Record(TraceActivity::kQueue, {1, "x", 0}, off);
  CHECK(Drain(page).empty());
}

TEST_CASE("bytes are those of a tensor or of all of a group") {
  Request request;
  request.signature.kind = RequestKind::kAllreduce;
  request.signature.dtype = HVD_FLOAT32;
  request.signature.ndim = 2;
  request.signature.shape[0] = 3;
  request.signature.shape[1] = 5;
  CHECK(InputBytes(request) == 60);
  request.buffers.parts.resize(2);
  request.buffers.parts[0].shape = {2, 2};
  request.buffers.parts[1].shape = {7};
  CHECK(InputBytes(request) == 44);
  request.signature.kind = RequestKind::kBarrier;
  CHECK(InputBytes(request) == 0);
}

TEST_CASE("a wait and a fused batch are put into their histograms") {
  const auto memory = HostMemory::Alone(HostPageBytes(1));
  REQUIRE(memory.ok());
  Metrics metrics({(*memory)->page(), 0, 1});
  metrics.Waited(500);
  metrics.Waited(3000);
  metrics.Waited(int64_t{1} << 50);
  metrics.Batch(1, 10, 100);
  metrics.Batch(4, 95, 100);
  metrics.Batch(4, 100, 100);
  RankTotals totals = {};
  totals.Add(WatchOf((*memory)->page(), 0).metrics[1]);
  CHECK(totals.waits == 3);
  CHECK(totals.wait_histogram[0] == 1);
  CHECK(totals.wait_histogram[2] == 1);
  CHECK(totals.wait_histogram[kWaitBuckets - 1] == 1);
  CHECK(totals.batches == 3);
  CHECK(totals.fused == 8);
  CHECK(totals.fusion_fill[9] == 2);
}

}  // namespace
}  // namespace hvd::rt
