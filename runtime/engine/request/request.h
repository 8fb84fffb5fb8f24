// SPDX-License-Identifier: Apache-2.0
// A rank's request: the value that travels from the C ABI through agreement to execution.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "hvd/hvd.h"
#include "runtime/collective/reduction_rules.h"

namespace hvd::rt {

enum class RequestKind : uint32_t {
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
  kSend,  // these two concern one peer alone: engine/pairs.h
  kReceive,
};
inline bool IsPair(RequestKind kind) {
  return kind == RequestKind::kSend || kind == RequestKind::kReceive;
}
// Only these are ever the same call for users, and can have a name of theirs.
inline bool IsUsers(RequestKind kind) {
  return kind != RequestKind::kLeave && kind != RequestKind::kJoin &&
         kind != RequestKind::kAddProcessSet && kind != RequestKind::kRemoveProcessSet;
}
const char* KindName(RequestKind kind);
const char* OpName(uint32_t op);  // of Signature::op

// Names that users cannot give, by their first byte: those of hvd's own calls, and those of what
// belongs to a call of another name. The C ABI refuses them from users.
inline constexpr char kOwnName[] = "\x01";
inline constexpr char kPartName[] = "\x02";
bool IsReserved(std::string_view name);
// As messages say it: without those bytes.
std::string_view PlainName(std::string_view name);
// Returns the name of the request that holds a group's tensors of `dtype`, if it is not the first:
// for messages and for what belongs to it. (The ranks agree under the first one's.)
std::string NamePart(std::string_view group_name, uint32_t dtype);

inline constexpr int kMaxDimensions = 16;

// An op of Signature beyond hvd_op_t: the average over the ranks that have not joined.
inline constexpr uint32_t kAverageOfContributors = 1000;

// The part of a request that all ranks must agree on. Plain bytes: it also lies in the hosts'
// shared memory.
//
// A group of tensors enters as one request: `group_count` tensors of one type. `shape` then has
// their element counts (of a row, for an allgather); when there are more than kMaxDimensions, the
// last is the sum of the rest. Where its types differ there is a request a type. Only the first is
// agreed on, for all: the shapes and types of the whole group are in `group_hash`.
//
// Adding and removing process sets: `shape` begins with the ranks (the set's number), all of them
// are in `group_hash`.
struct Signature {
  RequestKind kind = RequestKind::kBarrier;
  uint32_t dtype = 0;
  uint32_t op = 0;  // hvd_op_t or kAverageOfContributors
  int32_t root = 0;
  uint16_t device_type = HVD_CPU;
  uint8_t refuses_joined = 0;  // 1: a mismatch when a rank has joined
  uint8_t group_types = 0;     // of a group: the types of its tensors; 0: a single tensor
  int32_t ndim = 0;
  int32_t group_count = 0;   // 0: a single tensor
  uint32_t compression = 0;  // hvd_compression_t
  uint64_t group_hash = 0;   // of all shapes of the group; of the ranks of a process set
  uint64_t contents = 0;     // a hash of what the caller says that the tensors are; 0: nothing
  double prescale = 1.0;
  double postscale = 1.0;
  std::array<int64_t, kMaxDimensions> shape{};

  int64_t rows() const { return ndim > 0 ? shape[0] : 0; }
  bool is_group() const { return group_count > 0; }
  // Its device's library executes it, or the ranks only agree on it (DeviceWork::Takes).
  bool is_on_device() const { return device_type != HVD_CPU; }
  // 1 for a scalar; the sum over a group.
  size_t elements() const {
    if (is_group()) return static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), 0L));
    return ndim == 0 ? 1 : static_cast<size_t>(shape[0]) * row_elements();
  }
  // In one row of the first dimension.
  size_t row_elements() const {
    size_t count = 1;
    for (int d = 1; d < ndim; ++d) count *= static_cast<size_t>(shape[d]);
    return count;
  }
};

// "allreduce float32 [64,10] sum"
std::string Describe(const Signature& signature);

// A rank's rows of a reduce-scatter: the first ranks get one more when they do not divide evenly.
struct ScatteredRows {
  ScatteredRows(int64_t all, int ranks, int rank)
      : begin(all / ranks * rank + std::min<int64_t>(rank, all % ranks)),
        count(all / ranks + (rank < all % ranks ? 1 : 0)) {}
  const int64_t begin, count;
};

// One tensor of a grouped request.
struct RequestPart {
  const void* input = nullptr;
  void* output = nullptr;   // null for a result that the library allocates
  int64_t output_rows = 0;  // of the caller's output, where rows may differ
  int position = 0;         // in the call's group, of which this request may be a part
  std::vector<int64_t> shape;
  void* stream = nullptr;  // of what lies on a device
  void* owned_result = nullptr;
  std::vector<int64_t> result_shape;  // of owned_result
};

// The caller's function that gives memory for a result; null: the library allocates.
struct ResultSource {
  decltype(hvd_options_t::result_fn) give = nullptr;
  void* arg = nullptr;
};

struct LocalName;
struct Request;
// What the device's room knows of a request (runtime/device/caller_order.h). The engine only keeps
// it.
class CallerOrder;
class LaunchedEnd;

// An observer is told that a request is done: once, by a thread that is in the engine with no lock
// held, and has the executor's role: it must not wait for the engine. Until then the request lives.
class RequestObserver {
 public:
  virtual ~RequestObserver() = default;
  virtual void OnDone(Request* request) = 0;
};

// The one device on which a request's tensors lie, and the order that they keep there. The driver's
// handles.
struct DevicePlace {
  int id = 0;
  void* stream = nullptr;       // of the first tensor
  void* ready_event = nullptr;  // null: what is on the streams now comes before
  bool waits_on_host = false;   // a wait is for the bytes, and not for the stream
  // The work that comes before it on the caller's streams.
  std::shared_ptr<CallerOrder> order;
};

// Where this rank has the tensors. The submitter's, before the submission; nobody changes it until
// the request is done.
struct RequestBuffers {
  const void* input = nullptr;
  void* output = nullptr;  // null for an allgather whose result the library allocates
  // With the caller's output of an allgather or alltoall: its rows.
  int64_t output_rows = 0;
  std::vector<RequestPart> parts;     // of a group; then input and output above are not used
  std::vector<int64_t> splits;        // of an alltoall: rows for each rank; empty: even
  bool wants_received_splits = true;  // of an alltoall
  ResultSource source;                // where output is null
  DevicePlace device;                 // unless signature.device_type is the CPU
};

// The outcome of a request. Written by the executor before `done`, or by whoever ends what is
// pending; then the submitter's. Results of a group are in its parts.
struct RequestResult {
  void* owned = nullptr;                // the request's until its waiter takes it
  void (*free_owned)(void*) = nullptr;  // frees that, and a group's results; null: malloc'ed
  // Gives such memory, on that device; null there is none. Null: malloc.
  void* (*allocate_owned)(int device, size_t bytes) = nullptr;
  std::vector<int64_t> shape;            // of owned
  std::vector<int64_t> received_splits;  // of an alltoall
  int64_t number = 0;                    // join: the last rank; add process set: its number
  // True for a request of tensors on a device that was agreed on while nothing was exchanged: what
  // it brings travels under other names (runtime/device/staged/).
  bool agreed_only = false;
  // Otherwise, the event that stands behind it on the device; null: nothing has been launched.
  std::shared_ptr<LaunchedEnd> device_end;
  absl::Status status;
};

// How it goes on its way through the engine, which alone writes this: under its lock. The executor
// reads without it what was written at the submission.
struct RequestCourse {
  uint64_t sequence = 0;  // of this rank's submissions in its set
  // The requests of a group's other types, in its first request: they go where it goes. Borrowed,
  // as they are.
  absl::Span<const std::unique_ptr<Request>> others;
  bool is_other = false;          // it is one of these
  bool alone = false;             // its submitter waits for it, and for nothing else
  int64_t submitted_ns = 0;       // while the timeline is on: when (engine/timeline.h)
  LocalName* local = nullptr;     // while pending; the first one's; none of a send or receive
  Request* next_ended = nullptr;  // of those whose observers are to be told
  bool ended_role = false;        // with it its submitter has left the executor's role
};

// A submitted request: what this rank asks for, and its buffers, its result and its course apart.
// Owned by the submitter (blocking call) or the handle table; the engine borrows it from submit
// until `done`, and until its observer, if it has one, is told.
struct Request {
  // The request as asked for, which all ranks must agree on. The submitter's, before the
  // submission. (The engine names a group's other requests.)
  std::string name;      // as given; see AgreedName (local_name.h)
  bool unnamed = false;  // takes the next turn of the unnamed ones
  Signature signature;
  std::string contents;   // what the tensors are to the caller: for messages; see the signature's
  int root_index = 0;     // of a broadcast: the root's index in the process set
  int peer = 0;           // of a send or receive: the other's index there
  int64_t tag = 0;        // likewise: tells them apart
  bool own_pair = false;  // likewise: hvd's own, whose tags are no user's

  RequestObserver* observer = nullptr;  // the submitter's; null: nobody is told

  RequestBuffers buffers;
  RequestResult result;
  RequestCourse course;
  // The last that the engine writes: its waiters may go on. (It has finished, or a device has it.)
  std::atomic<bool> done{false};

  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();
};

}  // namespace hvd::rt
