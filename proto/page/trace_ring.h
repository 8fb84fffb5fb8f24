// SPDX-License-Identifier: Apache-2.0
// A rank's timeline on its way to hvdd: a ring of events in the epoch's shared memory. The rank
// writes without a system call or a thread of its own; hvdd reads, so what a killed rank had
// written is still read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// The activity that a span of time was spent on. The first ones are the operations, numbered as the
// engine numbers its requests.
enum class TraceActivity : uint8_t {
  kNone = 0,
  kAllreduce = 1,
  kAllgather,
  kBroadcast,
  kBarrier,
  kLeave,
  kReduceScatter,
  kAlltoall,
  kJoin,
  kAddProcessSet,
  kRemoveProcessSet,
  kLastOperation = kRemoveProcessSet,
  kNegotiate = 32,  // + an operation: from the submission until all ranks have agreed
  kQueue = 64,      // agreed, and other batches run first
  kHostReduce,      // inside a host, by shared memory
  kHostCopy,        // likewise, without arithmetic
  kNetworkReduce,   // between hosts
  kNetworkCopy,
  kDeviceReduce,  // on the rank's device, which has it on a stream
  kDeviceCopy,
  kLastActivity = kDeviceCopy,
  kSetNumber = 253,  // of the process set whose tensor's name follows; none: 0
  kNameText = 254,   // 24 bytes of a tensor's name; more follow
  kNameEnd = 255,    // its last bytes, filled up with zeros
};
// Horovod's names where it has one: "ALLREDUCE", "NEGOTIATE_ALLREDUCE", "QUEUE"; empty for what is
// no activity. There is no MEMCPY_IN_FUSION_BUFFER: nothing is packed before it is reduced.
std::string ActivityName(TraceActivity activity);

// Written once, then published by its tag: lap 16 bits, region 8, activity 8, tensor 32.
struct TraceSlot {
  uint64_t words[3];  // begin and end (CLOCK_MONOTONIC of the host, ns), bytes; or text
  std::atomic<uint64_t> tag;
};
static_assert(sizeof(TraceSlot) == 32);

inline constexpr size_t kTraceSlots = 131072;

// Zeroed memory is an empty ring.
struct TraceRing {
  alignas(64) std::atomic<uint64_t> head;  // slots taken by writers
  std::atomic<uint64_t> lost;              // events that found the ring full
  alignas(64) std::atomic<uint64_t> tail;  // slots that hvdd has read
  alignas(64) TraceSlot slots[kTraceSlots];
};
inline constexpr size_t kTraceRingBytes = (sizeof(TraceRing) + 4095) / 4096 * 4096;

// One span of one tensor. `tensor` is the name's number in its set. Sets that come and go have a
// `region` one after the other; users know them by `set`, which is told with the tensor's name.
struct TraceSpan {
  TraceActivity activity = TraceActivity::kNone;
  uint8_t region = 0;
  uint32_t tensor = 0;
  int64_t begin_ns = 0, end_ns = 0;
  uint64_t bytes = 0;
  int32_t set = 0;
};

// Adds a span; with a name (not empty), says first what its tensor is called from now on, and in
// which set. Wait-free but for the race for the next slots; any thread. False: the ring was full,
// and the span is counted as lost.
bool PutSpan(TraceRing* ring, const TraceSpan& span, std::string_view name);

// hvdd's place in a ring. Trusts nothing that the ring says but the slots' contents.
struct TraceCursor {
  uint64_t next = 0;
  uint64_t lost = 0;  // told so far
};
// Appends what was published since the last call, at most `room` bytes of slots, in frames of at
// most 64 KB; nothing if there is nothing.
void DrainRing(TraceRing* ring, TraceCursor* cursor, uint32_t local_rank, size_t room,
               std::string* out);

// One record of a stream of frames: an event, or how many events are missing.
struct TraceRecord {
  uint32_t local_rank = 0;
  uint64_t lost = 0;  // not 0: so many events are missing here, and the rest says nothing
  // Activity kNameEnd: `name` is what the span's tensor of its region is called from now on, in the
  // span's set; of others the set is not told.
  TraceSpan span;
  std::string name;
};

// Cuts a host's stream of frames, in whatever pieces it comes, into records.
class TraceDecoder {
 public:
  // False: the bytes are no such stream; nothing more can be had from it.
  bool Take(std::string_view bytes, std::vector<TraceRecord>* records);

 private:
  struct Name {
    std::string text;
    int32_t set = 0;
  };
  void TakeSlot(uint32_t local_rank, const char* slot, std::vector<TraceRecord>* records);
  std::string rest_;                // an incomplete frame
  std::map<uint32_t, Name> names_;  // under way, by local rank: their slots are neighbours
};

}  // namespace hvd
