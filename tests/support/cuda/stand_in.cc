// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda/stand_in.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace hvd::rt {
namespace {

constexpr auto kInvalidValue = static_cast<CudaResult>(1);
constexpr auto kOutOfMemory = static_cast<CudaResult>(2);
constexpr auto kInvalidHandle = static_cast<CudaResult>(400);

[[noreturn]] void Refuse(const std::string& word) {
  fprintf(stderr, "HVD_STAND_IN: '%s' is none of its words\n", word.c_str());
  abort();
}

std::string Name(const OrderStep& step) {
  return "step " + std::to_string(step.number) + " of stream " + std::to_string(step.stream);
}

}  // namespace

// One branch a word.
StandInSettings ReadStandInSettings(const char* text) {
  StandInSettings settings;
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) Refuse(word);
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    const size_t colon = value.find(':');
    if (name == "devices") {
      settings.devices = std::stoi(value);
    } else if (name == "delay_us") {
      settings.delay = std::chrono::microseconds(std::stoi(value));
    } else if (name == "hang") {
      settings.hanging = value;
    } else if (name == "own_gpu") {
      settings.own_gpu = value == "1";
    } else if (name == "abort" && value == "together") {
      settings.aborts_together = true;
    } else if (name == "report") {
      settings.report = value;
    } else if (name == "fail" && colon != std::string::npos) {
      settings.failing = value.substr(0, colon);
      settings.fails_at = std::stoull(value.substr(colon + 1));
    } else {
      Refuse(word);
    }
  }
  return settings;
}

StandIn::StandIn(StandInSettings settings) : settings_(std::move(settings)) {
  streams_[0] = {order_.AddStream(), std::make_unique<StreamWorker>(settings_.delay)};
}

void StandIn::End() {
  std::map<uint64_t, Stream> streams;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams.swap(streams_);
  }
  streams.erase(0);
  const size_t left = streams.size();
  streams.clear();  // their work ends first
  const std::lock_guard<std::mutex> lock(mutex_);
  FindLeft(left, "streams were never destroyed");
  FindLeft(events_.size(), "events were never destroyed");
  FindLeft(memory_.allocations(), "pieces of device memory were never freed");
  FindLeft(memory_.pins(), "pieces of memory stayed pinned");
  WriteReport();
}

StandIn& StandIn::Get() {
  static StandIn& one = *new StandIn(ReadStandInSettings(getenv("HVD_STAND_IN")));
  static const AtEnd<StandIn> end(&one);
  return one;
}

void StandIn::FindLeft(size_t count, const char* what) {
  if (count > 0) FindLocked(std::to_string(count) + " " + what);
}

void StandIn::WriteReport() {
  if (findings_.empty()) return;
  std::ofstream file;
  if (!settings_.report.empty()) file.open(settings_.report + "." + std::to_string(getpid()));
  for (const std::string& finding : findings_) {
    if (file.is_open()) file << finding << "\n";
    if (!file.is_open()) fprintf(stderr, "stand-in: %s\n", finding.c_str());
  }
}

bool StandIn::Fails(const char* call) {
  while (settings_.hanging == call) pause();
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t count = ++calls_[call];
  return settings_.failing == call && count == settings_.fails_at;
}

uint64_t StandIn::calls(const std::string& call) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

void StandIn::Find(const std::string& finding) {
  const std::lock_guard<std::mutex> lock(mutex_);
  FindLocked(finding);
}

void StandIn::FindLocked(const std::string& finding) { findings_.push_back(finding); }

std::vector<std::string> StandIn::findings() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return findings_;
}

// ---- memory ----

CudaResult StandIn::Allocate(uint64_t* address, size_t bytes, int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes == 0) return kInvalidValue;
  *address = memory_.Allocate(bytes, device);
  return *address == 0 ? kOutOfMemory : kCudaSuccess;
}

CudaResult StandIn::Free(uint64_t address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t bytes = memory_.SizeOf(address);
  if (bytes == 0) {
    FindLocked("what is freed is no device memory, or was freed before");
    return kInvalidValue;
  }
  const auto still = log_.Free(address, bytes);
  if (still) FindLocked("device memory is freed while " + Name(*still) + " may still touch it");
  memory_.Free(address, still.has_value());
  return kCudaSuccess;
}

CudaResult StandIn::AllocatePinned(void** address, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes == 0) return kInvalidValue;
  auto owned = std::make_unique<char[]>(bytes);
  *address = owned.get();
  memory_.Pin(*address, bytes, std::move(owned));
  return kCudaSuccess;
}

CudaResult StandIn::FreePinned(void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_.Unpin(address, true)) return kCudaSuccess;
  FindLocked("what is freed as pinned memory was not allocated so");
  return kInvalidValue;
}

CudaResult StandIn::Pin(void* address, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_.KindOf(reinterpret_cast<uint64_t>(address)) != MemoryKind::kPageable) {
    return kInvalidValue;
  }
  memory_.Pin(address, bytes);
  return kCudaSuccess;
}

CudaResult StandIn::Unpin(void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory_.Unpin(address, false)) return kCudaSuccess;
  FindLocked("what is unregistered was not registered");
  return kInvalidValue;
}

MemoryKind StandIn::KindOf(uint64_t address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return memory_.KindOf(address);
}

int StandIn::DeviceOf(uint64_t address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return memory_.DeviceOf(address);
}

// ---- streams and events ----

StandIn::Stream* StandIn::StreamOf(uint64_t stream) {
  const auto found = streams_.find(stream);
  if (found != streams_.end()) return &found->second;
  FindLocked("a stream that is none, or was destroyed, is used");
  return nullptr;
}

uint64_t StandIn::CreateStream() {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_[++last_] = {order_.AddStream(), std::make_unique<StreamWorker>(settings_.delay)};
  return last_;
}

// As the driver does: what was asked for runs to its end.
CudaResult StandIn::DestroyStream(uint64_t stream) {
  std::unique_ptr<StreamWorker> worker;
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream* found = StreamOf(stream);
  if (found == nullptr || stream == 0) return kInvalidHandle;
  worker = std::move(found->worker);
  ended_.push_back(order_.Record(found->timeline));
  streams_.erase(stream);
  return kCudaSuccess;
}

CudaResult StandIn::QueryStream(uint64_t stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream* found = StreamOf(stream);
  if (found == nullptr) return kInvalidHandle;
  if (!found->worker->idle()) return kCudaNotReady;
  order_.HostSaw(order_.Record(found->timeline));
  return kCudaSuccess;
}

CudaResult StandIn::LaunchHost(uint64_t stream, void (*call)(void* argument), void* argument) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream* in = StreamOf(stream);
  if (in == nullptr) return kInvalidHandle;
  in->worker->Push([this, call, argument, behind = order_.Record(in->timeline)] {
    {
      const std::lock_guard<std::mutex> seen(mutex_);
      order_.HostSaw(behind);
    }
    call(argument);
  });
  return kCudaSuccess;
}

uint64_t StandIn::CreateEvent() {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_[++last_];
  return last_;
}

CudaResult StandIn::DestroyEvent(uint64_t event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (events_.erase(event) == 1) return kCudaSuccess;
  FindLocked("an event that is none, or was destroyed, is destroyed");
  return kInvalidHandle;
}

CudaResult StandIn::Record(uint64_t event, uint64_t stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream* in = StreamOf(stream);
  const auto found = events_.find(event);
  if (in == nullptr || found == events_.end()) return kInvalidHandle;
  auto done = std::make_shared<Completion>();
  found->second = {true, order_.Record(in->timeline), done};
  in->worker->Push([done] { done->Set(); });
  return kCudaSuccess;
}

// One that was never recorded is over, as the driver has it: almost always a mistake.
CudaResult StandIn::Await(uint64_t stream, uint64_t event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream* in = StreamOf(stream);
  const auto found = events_.find(event);
  if (in == nullptr || found == events_.end()) return kInvalidHandle;
  if (!found->second.recorded) FindLocked("a stream waits for an event that was never recorded");
  if (!found->second.recorded) return kCudaSuccess;
  order_.Await(in->timeline, found->second.clock);
  in->worker->Push([done = found->second.done] { done->Wait(); });
  return kCudaSuccess;
}

CudaResult StandIn::QueryEvent(uint64_t event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return kInvalidHandle;
  if (!found->second.recorded) return kCudaSuccess;
  if (!found->second.done->is_set()) return kCudaNotReady;
  order_.HostSaw(found->second.clock);
  return kCudaSuccess;
}

CudaResult StandIn::AwaitHere(uint64_t event) {
  std::shared_ptr<Completion> done;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = events_.find(event);
    if (found == events_.end()) return kInvalidHandle;
    done = found->second.done;
  }
  if (done != nullptr) done->Wait();
  return QueryEvent(event);
}

CudaResult StandIn::AwaitAll() {
  std::vector<std::shared_ptr<Completion>> done;
  std::vector<OrderClock> clocks;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    clocks.swap(ended_);
    for (auto& [number, stream] : streams_) {
      clocks.push_back(order_.Record(stream.timeline));
      done.push_back(std::make_shared<Completion>());
      stream.worker->Push([one = done.back()] { one->Set(); });
    }
  }
  for (const auto& one : done) one->Wait();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const OrderClock& clock : clocks) order_.HostSaw(clock);
  return kCudaSuccess;
}

// ---- work ----

void StandIn::CheckRange(const OrderStep& step, const Range& range, const char* what) {
  const auto race = log_.Note(step, {range.address, range.bytes, range.writes});
  if (!race) return;
  FindLocked(std::string(what) + ", " + Name(step) + ", " + (range.writes ? "writes" : "reads") +
             " what " + Name(*race) + " touches, and nothing orders the two");
}

CudaResult StandIn::Enqueue(uint64_t stream, const std::vector<Range>& ranges, const char* what,
                            Work work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream* in = StreamOf(stream);
  if (in == nullptr) return kInvalidHandle;
  std::vector<char*> places;
  for (const Range& range : ranges) {
    char* place = range.on_device ? memory_.Bytes(range.address, range.bytes)
                                  : reinterpret_cast<char*>(range.address);
    if (!range.on_device && memory_.KindOf(range.address) == MemoryKind::kDevice) place = nullptr;
    if (place == nullptr) {
      FindLocked(std::string(what) + ": an address is of the wrong kind of memory, was freed, or " +
                 "ends beyond its piece");
      return kInvalidValue;
    }
    places.push_back(place);
  }
  const OrderStep step = order_.Enqueue(in->timeline);
  for (const Range& range : ranges) CheckRange(step, range, what);
  in->worker->Push([work = std::move(work), places = std::move(places)] { work(places); });
  return kCudaSuccess;
}

}  // namespace hvd::rt
