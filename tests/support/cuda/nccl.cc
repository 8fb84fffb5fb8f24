// SPDX-License-Identifier: Apache-2.0
// libnccl.so.2 as the tests build it: NCCL's names over meetings of ranks (nccl_meeting.h) and the
// streams of the stand-in's driver. Functions have the types that runtime/gpu/nccl_library.h
// declares, which a test compares with the real header.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/cuda/at_end.h"
#include "tests/support/cuda/enqueue.h"
#include "tests/support/cuda/nccl_arithmetic.h"
#include "tests/support/cuda/nccl_work.h"

namespace hvd::rt {

// Behind ncclComm_t.
struct NcclCommunicatorObject {
  std::shared_ptr<NcclMeeting> meeting;
  std::map<int, double> scales;  // of ops that its user has made
  int last_op = kNcclAvg;
};

namespace {

constexpr int kVersion = 22809;

// The communicators of this process: which there are, which have ended, and how many are being
// aborted.
class Communicators {
 public:
  // It outlives all threads, as the driver's stand-in does.
  static Communicators& Get() {
    static Communicators& one = *new Communicators;
    static const AtEnd<Communicators> end(&one);
    return one;
  }
  // `place`: its id, and the rank in it. NCCL's ids are for one communicator each.
  void Begins(NcclCommunicator communicator, const std::string& place) {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_.insert(communicator);
    if (!places_.insert(place).second) {
      hvd_stand_in_find("a rank makes a second communicator of one id");
    }
  }
  // False, and a finding: it has ended, or never was.
  bool MustBeOpen(NcclCommunicator communicator, const char* call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (open_.count(communicator) > 0) return true;
    hvd_stand_in_find(
        (std::string(call) + " is given no communicator, or one that has ended").c_str());
    return false;
  }
  void Ends(NcclCommunicator communicator) {
    const std::lock_guard<std::mutex> lock(mutex_);
    communicator->meeting.reset();  // what runs still has it
    open_.erase(communicator);
    ended_.emplace_back(communicator);
    aborting_ = std::max(0, aborting_ - 1);
  }
  // As NCCL's aborts may: of those that wait for one another.
  void AwaitAborts() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++aborting_;
    changed_.notify_all();
    const int all = static_cast<int>(open_.size());
    changed_.wait(lock, [&] { return most_ >= all || aborting_ >= all; });
    most_ = std::max(most_, aborting_);
    changed_.notify_all();
  }
  // Before the driver's stand-in, which reports.
  void End() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!open_.empty()) hvd_stand_in_find("communicators were neither destroyed nor aborted");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<NcclCommunicator> open_;
  std::vector<std::unique_ptr<NcclCommunicatorObject>> ended_;  // so that no other gets its address
  std::set<std::string> places_;
  int aborting_ = 0, most_ = 0;
};

struct Call {
  NcclCommunicator communicator = nullptr;
  CudaStream stream = nullptr;
  NcclWork work;
  std::vector<hvd_stand_in_range> ranges;
};

// The calls that a thread has made since its outermost ncclGroupStart.
thread_local int depth = 0;
thread_local std::vector<Call> asked;

// A group of one communicator on its way through a stream.
struct Running {
  std::shared_ptr<NcclMeeting> meeting;
  std::vector<NcclWork> group;
  std::vector<bool> reads, writes;  // by work: whether it has such a range
};

void Run(char* const* places, void* data) {
  const std::unique_ptr<Running> running(static_cast<Running*>(data));
  size_t next = 0;
  for (size_t i = 0; i < running->group.size(); ++i) {
    if (running->reads[i]) running->group[i].from = places[next++];
    if (running->writes[i]) running->group[i].to = places[next++];
  }
  if (running->meeting->Arrive()) RunNcclGroup(running->group, running->meeting.get());
}

NcclResult Launch(std::vector<Call> calls) {
  auto running = std::make_unique<Running>();
  running->meeting = calls.front().communicator->meeting;
  std::vector<hvd_stand_in_range> ranges;
  for (Call& call : calls) {
    running->group.push_back(call.work);
    bool reads = false, writes = false;
    for (const hvd_stand_in_range& range : call.ranges) (range.writes ? writes : reads) = true;
    running->reads.push_back(reads);
    running->writes.push_back(writes);
    ranges.insert(ranges.end(), call.ranges.begin(), call.ranges.end());
  }
  const int refused = hvd_stand_in_enqueue(calls.front().stream, ranges.data(), ranges.size(),
                                           "an NCCL group", Run, running.get());
  if (refused != 0) return kNcclCudaError;
  (void)running.release();  // Run has it
  return kNcclSuccess;
}

// Communicator by communicator, in the order of their first calls.
NcclResult LaunchAll() {
  std::vector<Call> calls = std::exchange(asked, {});
  while (!calls.empty()) {
    std::vector<Call> first, rest;
    for (Call& call : calls) {
      const bool same = call.communicator == calls.front().communicator;
      (same ? first : rest).push_back(call);
    }
    const NcclResult launched = Launch(std::move(first));
    if (launched != kNcclSuccess) return launched;
    calls = std::move(rest);
  }
  return kNcclSuccess;
}

// How many elements a rank reads and writes.
struct Extent {
  size_t reads = 0, writes = 0;
};
Extent ExtentOf(const NcclWork& work, const NcclMeeting& meeting) {
  const auto ranks = static_cast<size_t>(meeting.ranks());
  const bool is_root = meeting.rank() == work.other;
  switch (work.kind) {
    case NcclKind::kAllGather:
      return {work.count, work.count * ranks};
    case NcclKind::kReduceScatter:
      return {work.count * ranks, work.count};
    case NcclKind::kReduce:
      return {work.count, is_root ? work.count : 0};
    case NcclKind::kBroadcast:
      return {is_root ? work.count : 0, work.count};
    case NcclKind::kSend:
      return {work.count, 0};
    case NcclKind::kReceive:
      return {0, work.count};
    default:
      return {work.count, work.count};
  }
}

NcclResult Ask(const char* name, NcclCommunicator communicator, CudaStream stream, NcclWork work) {
  if (hvd_stand_in_fails(name)) return kNcclInternalError;
  if (!Communicators::Get().MustBeOpen(communicator, name)) return kNcclInvalidArgument;
  const auto scale = communicator->scales.find(work.op);
  if (scale != communicator->scales.end()) {
    work.scale = scale->second;
    work.op = kNcclSum;
  }
  const size_t size = NcclBytesOf(work.type);
  const Extent extent = ExtentOf(work, *communicator->meeting);
  Call call{communicator, stream, work, {}};
  const auto address = [](const void* place) { return reinterpret_cast<uint64_t>(place); };
  if (extent.reads > 0) call.ranges.push_back({address(work.from), extent.reads * size, false});
  if (extent.writes > 0) call.ranges.push_back({address(work.to), extent.writes * size, true});
  asked.push_back(std::move(call));
  return depth > 0 ? kNcclSuccess : LaunchAll();
}

// Beside this library: all hosts of a test see that, and no two share memory of the system's.
std::string NameOf(const NcclId& id) {
  Dl_info about = {};
  std::string name;
  if (dladdr(reinterpret_cast<const void*>(&NameOf), &about) != 0) name = about.dli_fname;
  name = name.substr(0, name.rfind('/') + 1) + "meeting-";
  for (int i = 0; i < 16; ++i) {
    char hex[3];
    snprintf(hex, sizeof(hex), "%02x", static_cast<unsigned char>(id.bytes[i]));
    name += hex;
  }
  return name;
}

}  // namespace
}  // namespace hvd::rt

using namespace hvd::rt;  // NOLINT(google-build-using-namespace): all that follows is NCCL's

extern "C" {

NcclResult ncclGetVersion(int* version) {
  *version = kVersion;
  return kNcclSuccess;
}
const char* ncclGetErrorString(NcclResult result) {
  return result == kNcclInternalError ? "fails on order" : "an error of the stand-in";
}
const char* ncclGetLastError(NcclCommunicator) { return ""; }

NcclResult ncclGetUniqueId(NcclId* id) {
  std::random_device random;
  for (char& byte : id->bytes) byte = static_cast<char>(random());
  return hvd_stand_in_fails("ncclGetUniqueId") ? kNcclSystemError : kNcclSuccess;
}
NcclResult ncclCommInitRankConfig(NcclCommunicator* communicator, int ranks, NcclId id, int rank,
                                  NcclConfig* config) {
  if (hvd_stand_in_fails("ncclCommInitRankConfig")) return kNcclSystemError;
  auto made = std::make_unique<NcclCommunicatorObject>();
  const std::string name = NameOf(id);
  made->meeting = std::make_shared<NcclMeeting>(name, ranks, rank);
  if (!made->meeting->valid()) return kNcclSystemError;
  const bool waits = config == nullptr || config->blocking != 0;
  if (waits) made->meeting->Arrive();
  *communicator = made.release();
  Communicators::Get().Begins(*communicator, name + " " + std::to_string(rank));
  return waits ? kNcclSuccess : kNcclInProgress;
}
NcclResult ncclCommGetAsyncError(NcclCommunicator communicator, NcclResult* error) {
  if (!Communicators::Get().MustBeOpen(communicator, "ncclCommGetAsyncError")) {
    return kNcclInvalidArgument;
  }
  *error = communicator->meeting->all_there() ? kNcclSuccess : kNcclInProgress;
  return hvd_stand_in_fails("ncclCommGetAsyncError") ? kNcclRemoteError : kNcclSuccess;
}
NcclResult ncclCommFinalize(NcclCommunicator communicator) {
  return Communicators::Get().MustBeOpen(communicator, "ncclCommFinalize") ? kNcclSuccess
                                                                           : kNcclInvalidArgument;
}
NcclResult ncclCommDestroy(NcclCommunicator communicator) {
  if (!Communicators::Get().MustBeOpen(communicator, "ncclCommDestroy"))
    return kNcclInvalidArgument;
  Communicators::Get().Ends(communicator);
  return kNcclSuccess;
}
NcclResult ncclCommAbort(NcclCommunicator communicator) {
  const bool fails = hvd_stand_in_fails("ncclCommAbort");  // or hangs, and the device with it
  if (!Communicators::Get().MustBeOpen(communicator, "ncclCommAbort")) return kNcclInvalidArgument;
  if (hvd_stand_in_aborts_together()) Communicators::Get().AwaitAborts();
  communicator->meeting->Leave();
  Communicators::Get().Ends(communicator);
  return fails ? kNcclSystemError : kNcclSuccess;
}

NcclResult ncclGroupStart() {
  ++depth;
  return kNcclSuccess;
}
NcclResult ncclGroupEnd() {
  if (hvd_stand_in_fails("ncclGroupEnd")) return kNcclInternalError;
  if (depth == 0) return kNcclInvalidUsage;
  return --depth > 0 || asked.empty() ? kNcclSuccess : LaunchAll();
}

NcclResult ncclAllReduce(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                         NcclCommunicator communicator, CudaStream stream) {
  return Ask("ncclAllReduce", communicator, stream,
             {NcclKind::kAllReduce, static_cast<const char*>(from), static_cast<char*>(to), count,
              type, op});
}
NcclResult ncclReduce(const void* from, void* to, size_t count, NcclType type, NcclOp op, int root,
                      NcclCommunicator communicator, CudaStream stream) {
  return Ask("ncclReduce", communicator, stream,
             {NcclKind::kReduce, static_cast<const char*>(from), static_cast<char*>(to), count,
              type, op, 1, root});
}
NcclResult ncclBroadcast(const void* from, void* to, size_t count, NcclType type, int root,
                         NcclCommunicator communicator, CudaStream stream) {
  return Ask("ncclBroadcast", communicator, stream,
             {NcclKind::kBroadcast, static_cast<const char*>(from), static_cast<char*>(to), count,
              type, kNcclSum, 1, root});
}
NcclResult ncclAllGather(const void* from, void* to, size_t count, NcclType type,
                         NcclCommunicator communicator, CudaStream stream) {
  return Ask(
      "ncclAllGather", communicator, stream,
      {NcclKind::kAllGather, static_cast<const char*>(from), static_cast<char*>(to), count, type});
}
NcclResult ncclReduceScatter(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                             NcclCommunicator communicator, CudaStream stream) {
  return Ask("ncclReduceScatter", communicator, stream,
             {NcclKind::kReduceScatter, static_cast<const char*>(from), static_cast<char*>(to),
              count, type, op});
}
NcclResult ncclSend(const void* from, size_t count, NcclType type, int peer,
                    NcclCommunicator communicator, CudaStream stream) {
  return Ask(
      "ncclSend", communicator, stream,
      {NcclKind::kSend, static_cast<const char*>(from), nullptr, count, type, kNcclSum, 1, peer});
}
NcclResult ncclRecv(void* to, size_t count, NcclType type, int peer, NcclCommunicator communicator,
                    CudaStream stream) {
  return Ask("ncclRecv", communicator, stream,
             {NcclKind::kReceive, nullptr, static_cast<char*>(to), count, type, kNcclSum, 1, peer});
}

// `scalar` is of `type`; the host's, as hvd gives it.
NcclResult ncclRedOpCreatePreMulSum(NcclOp* op, void* scalar, NcclType type,
                                    NcclResidence residence, NcclCommunicator communicator) {
  if (residence != kNcclScalarOnHost) return kNcclInvalidArgument;
  if (type < kNcclFloat16) return kNcclInvalidArgument;
  communicator->scales[++communicator->last_op] = NcclScalar(type, scalar);
  *op = static_cast<NcclOp>(communicator->last_op);
  return kNcclSuccess;
}
NcclResult ncclRedOpDestroy(NcclOp op, NcclCommunicator communicator) {
  return communicator->scales.erase(op) == 1 ? kNcclSuccess : kNcclInvalidArgument;
}

}  // extern "C"
