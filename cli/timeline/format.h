// SPDX-License-Identifier: Apache-2.0
// The two spellings of a timeline file. Pure: events in, bytes out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hvd::cli {

// A line of the picture: one tensor of one rank.
struct TimelineRow {
  int rank = 0;
  int row = 0;  // 1, 2, … in each rank
};

struct TimelineEvent {
  TimelineRow row;
  std::string_view activity;  // "NEGOTIATE_ALLREDUCE"
  int64_t begin_ns = 0;       // hvdrun's monotonic clock
  int64_t end_ns = 0;
  uint64_t bytes = 0;
};

class TimelineFormat {
 public:
  virtual ~TimelineFormat() = default;
  // The first bytes. `start_ns` (hvdrun's clock) is the picture's zero, `epoch_us` the same instant
  // by the calendar.
  virtual std::string Begin(int64_t start_ns, int64_t epoch_us) = 0;
  // Each rank and row is named once, before its first event.
  virtual std::string NameRank(int rank, std::string_view name) = 0;
  virtual std::string NameRow(const TimelineRow& row, std::string_view name) = 0;
  // There may be hundreds of thousands a second.
  virtual void Event(const TimelineEvent& event, std::string* out) = 0;
  // `count` events of the rank are missing before this instant.
  virtual std::string Lost(int rank, uint64_t count, int64_t at_ns) = 0;
  // An epoch of a job whose members come and go has begun.
  virtual std::string Epoch(uint64_t number, int64_t at_ns) = 0;
  // Returns the bytes that make the file whole whenever nothing follows; the next bytes overwrite
  // them.
  virtual std::string End() = 0;
};

// Chrome's JSON (chrome://tracing, Perfetto): an array of events, times in µs from the start.
std::unique_ptr<TimelineFormat> ChromeTimeline();
// Perfetto's protobuf (perfetto.protos.Trace).
std::unique_ptr<TimelineFormat> PerfettoTimeline();
// By the name's end: .pftrace and .perfetto-trace are Perfetto's, all others Chrome's.
std::unique_ptr<TimelineFormat> TimelineFormatFor(std::string_view path);

}  // namespace hvd::cli
