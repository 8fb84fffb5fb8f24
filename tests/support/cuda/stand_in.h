// SPDX-License-Identifier: Apache-2.0
// The state of a stand-in for the driver: one a process, behind libcuda.so.1 as the tests build it
// (driver.cc). It keeps the driver's promises and no more: streams run late, and memory is apart.
// A program's mistake is a finding, which a test reads. Never shipped.
//
// HVD_STAND_IN says how it is, as "name=value" words:
//   devices=N        how many there are (1)
//   delay_us=N       how long each piece of a stream's work is late (50)
//   fail=CALL:N      the Nth call of that name fails
//   hang=CALL        calls of that name never come back
//   own_gpu=1        GPUs are each process's own: their UUIDs say so
//   abort=together   a communicator's abort ends when all of the process are being aborted
//   report=PATH      findings are written to PATH.<pid>
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/gpu/cuda_driver.h"
#include "tests/support/cuda/at_end.h"
#include "tests/support/cuda/device_memory.h"
#include "tests/support/cuda/stream_order.h"
#include "tests/support/cuda/stream_worker.h"

namespace hvd::rt {

struct StandInSettings {
  int devices = 1;
  std::chrono::microseconds delay{50};
  std::string failing;  // the call that fails; empty: none
  uint64_t fails_at = 0;
  std::string hanging;  // the call that hangs; empty: none
  bool own_gpu = false;
  bool aborts_together = false;
  std::string report;  // empty: findings go to stderr
};
// Words that are none of its own end the process: a test that sets them wrong proves nothing.
StandInSettings ReadStandInSettings(const char* text);

class StandIn {
 public:
  explicit StandIn(StandInSettings settings);
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  // The one of this process. It outlives all threads: those of a program that fails call it to the
  // end.
  static StandIn& Get();
  // At the process's end: finds what is left, and writes the report.
  void End();

  const StandInSettings& settings() const { return settings_; }
  // Counts a call, and says whether it is to fail. Any thread.
  bool Fails(const char* call);
  uint64_t calls(const std::string& call) const;
  void Find(const std::string& finding);
  std::vector<std::string> findings() const;

  // ---- memory ----
  CudaResult Allocate(uint64_t* address, size_t bytes, int device);
  CudaResult Free(uint64_t address);
  CudaResult AllocatePinned(void** address, size_t bytes);
  CudaResult FreePinned(void* address);
  CudaResult Pin(void* address, size_t bytes);
  CudaResult Unpin(void* address);
  MemoryKind KindOf(uint64_t address) const;
  int DeviceOf(uint64_t address) const;

  // ---- streams and events ----
  uint64_t CreateStream();
  CudaResult DestroyStream(uint64_t stream);
  CudaResult QueryStream(uint64_t stream);
  // Calls it behind what is on the stream; who is told by it has seen all that.
  CudaResult LaunchHost(uint64_t stream, void (*call)(void* argument), void* argument);
  uint64_t CreateEvent();
  CudaResult DestroyEvent(uint64_t event);
  CudaResult Record(uint64_t event, uint64_t stream);
  CudaResult Await(uint64_t stream, uint64_t event);
  CudaResult QueryEvent(uint64_t event);
  CudaResult AwaitHere(uint64_t event);
  // The host waits for all that is on any stream, also on those that were destroyed.
  CudaResult AwaitAll();

  // One end of what a stream does: memory that it reads or writes, by the device's addresses or
  // the host's.
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool writes = false;
    bool on_device = true;
  };
  // Runs `work` on the stream; it gets where the bytes of each range lie. The ranges are checked
  // now: kinds, ends and order.
  using Work = std::function<void(const std::vector<char*>& places)>;
  CudaResult Enqueue(uint64_t stream, const std::vector<Range>& ranges, const char* what,
                     Work work);

 private:
  struct Stream {
    int timeline = 0;
    std::unique_ptr<StreamWorker> worker;
  };
  struct Event {
    bool recorded = false;
    OrderClock clock;
    std::shared_ptr<Completion> done;
  };
  Stream* StreamOf(uint64_t stream);
  void FindLocked(const std::string& finding);
  void CheckRange(const OrderStep& step, const Range& range, const char* what);
  void FindLeft(size_t count, const char* what);
  void WriteReport();

  const StandInSettings settings_;
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> calls_;
  std::vector<std::string> findings_;
  DeviceMemory memory_;
  StreamOrder order_;
  AccessLog log_{&order_};
  std::map<uint64_t, Stream> streams_;  // 0: the null stream
  std::map<uint64_t, Event> events_;
  std::vector<OrderClock> ended_;  // of streams that were destroyed, and nobody has waited for
  uint64_t last_ = 0;
};

}  // namespace hvd::rt
