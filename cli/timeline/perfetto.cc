// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "cli/timeline/format.h"
#include "proto/wire.h"

namespace hvd::cli {
namespace {

// Field numbers of perfetto.protos; the messages are named before the dash.
enum { kTracePacket = 1 };
enum {
  kPacketTimestamp = 8,
  kPacketSequence = 10,
  kPacketTrackEvent = 11,
  kPacketSequenceFlags = 13,
  kPacketTimestampClock = 58,
  kPacketTrackDescriptor = 60
};
enum { kDescriptorUuid = 1, kDescriptorName = 2, kDescriptorProcess = 3, kDescriptorParent = 5 };
enum { kProcessPid = 1, kProcessName = 6 };
enum { kEventAnnotations = 4, kEventType = 9, kEventTrack = 11, kEventName = 23 };
enum { kAnnotationUint = 3, kAnnotationName = 10 };
enum { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3 };
constexpr int kClockMonotonic = 3;
constexpr int kSequence = 1;

std::string Packet(const WireWriter& packet) {
  return WireWriter().Bytes(kTracePacket, packet.bytes()).bytes();
}

uint64_t RankTrack(int rank) { return static_cast<uint64_t>(rank + 1) << 32; }
uint64_t RowTrack(const TimelineRow& row) { return RankTrack(row.rank) + row.row; }

std::string EventPacket(int64_t at_ns, const WireWriter& event) {
  return Packet(WireWriter()
                    .Number(kPacketTimestamp, at_ns > 0 ? at_ns : 0)
                    .Number(kPacketTimestampClock, kClockMonotonic)
                    .Number(kPacketSequence, kSequence)
                    .Bytes(kPacketTrackEvent, event.bytes()));
}

class Perfetto final : public TimelineFormat {
 public:
  // The times are those of hvdrun's clock, so other traces of its host fit beside this one.
  std::string Begin(int64_t, int64_t) override {
    return Packet(WireWriter().Number(kPacketSequence, kSequence).Number(kPacketSequenceFlags, 1));
  }

  std::string NameRank(int rank, std::string_view name) override {
    const WireWriter process = WireWriter().Number(kProcessPid, rank + 1).Bytes(kProcessName, name);
    return Packet(WireWriter()
                      .Number(kPacketSequence, kSequence)
                      .Bytes(kPacketTrackDescriptor, WireWriter()
                                                         .Number(kDescriptorUuid, RankTrack(rank))
                                                         .Bytes(kDescriptorProcess, process.bytes())
                                                         .bytes()));
  }

  std::string NameRow(const TimelineRow& row, std::string_view name) override {
    return Packet(
        WireWriter()
            .Number(kPacketSequence, kSequence)
            .Bytes(kPacketTrackDescriptor, WireWriter()
                                               .Number(kDescriptorUuid, RowTrack(row))
                                               .Bytes(kDescriptorName, name)
                                               .Number(kDescriptorParent, RankTrack(row.rank))
                                               .bytes()));
  }

  void Event(const TimelineEvent& event, std::string* out) override {
    WireWriter begin;
    if (event.bytes != 0) {
      begin.Bytes(kEventAnnotations, WireWriter()
                                         .Number(kAnnotationUint, event.bytes)
                                         .Bytes(kAnnotationName, "bytes")
                                         .bytes());
    }
    begin.Number(kEventType, kSliceBegin)
        .Number(kEventTrack, RowTrack(event.row))
        .Bytes(kEventName, event.activity);
    const WireWriter end =
        WireWriter().Number(kEventType, kSliceEnd).Number(kEventTrack, RowTrack(event.row));
    *out += EventPacket(event.begin_ns, begin);
    *out += EventPacket(event.end_ns, end);
  }

  std::string Lost(int rank, uint64_t count, int64_t at_ns) override {
    return EventPacket(
        at_ns, WireWriter()
                   .Number(kEventType, kInstant)
                   .Number(kEventTrack, RankTrack(rank))
                   .Bytes(kEventName, absl::StrCat(count, " events are missing before here")));
  }

  std::string Epoch(uint64_t number, int64_t at_ns) override {
    return EventPacket(at_ns, WireWriter()
                                  .Number(kEventType, kInstant)
                                  .Number(kEventTrack, RankTrack(0))
                                  .Bytes(kEventName, absl::StrCat("epoch ", number)));
  }

  std::string End() override { return ""; }
};

}  // namespace

std::unique_ptr<TimelineFormat> PerfettoTimeline() { return std::make_unique<Perfetto>(); }

}  // namespace hvd::cli
