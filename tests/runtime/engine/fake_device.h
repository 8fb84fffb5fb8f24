// SPDX-License-Identifier: Apache-2.0
// A device whose work ends when the test says so.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine/execution/device_work.h"
#include "tests/runtime/engine/engine_world.h"

namespace hvd::rt::test {

// In which a wait that ought to last would end if it did not.
inline Engine::Clock::time_point Soon() {
  return Engine::Clock::now() + std::chrono::milliseconds(20);
}

// One rank's, as the test sees it. Any thread.
class FakeStream {
 public:
  // Waits until so many runs have been launched in all.
  void AwaitLaunches(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return ends_.size() >= count; });
  }
  size_t launches() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ends_.size();
  }
  // The run that was launched as the `index`th has ended. Nobody hears it who is gone.
  void Finish(size_t index, const absl::Status& status = absl::OkStatus()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (DeviceEnd ended = std::exchange(ends_[index], nullptr)) ended(status);
  }
  // Sets what Launch answers from now on.
  void Refuse(absl::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    refusal_ = std::move(status);
  }
  // The causes of all aborts.
  std::string aborts() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return aborts_;
  }
  // Returns the number of the launched run's requests, those of others counting too.
  size_t entries(size_t index) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return entries_[index];
  }

 private:
  friend class FakeDevice;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<DeviceEnd> ends_;  // by launch; null: told, or nobody would hear it
  std::vector<size_t> entries_;
  absl::Status refusal_;
  std::string aborts_;
};

class FakeDevice : public DeviceWork {
 public:
  explicit FakeDevice(FakeStream* stream) : stream_(*stream) {}
  ~FakeDevice() override {
    const std::lock_guard<std::mutex> lock(stream_.mutex_);
    for (DeviceEnd& end : stream_.ends_) end = nullptr;
  }

  absl::StatusOr<bool> Takes(const DeviceRun&) override { return true; }
  void Hurry() override {}
  absl::Status Launch(const DeviceRun& run, DeviceEnd ended) override {
    const std::lock_guard<std::mutex> lock(stream_.mutex_);
    if (!stream_.refusal_.ok()) return stream_.refusal_;
    stream_.ends_.push_back(std::move(ended));
    stream_.entries_.push_back(run.entries.size());
    stream_.changed_.notify_all();
    return absl::OkStatus();
  }
  // It still tells ends after this, as a device may: nobody listens.
  void Abort(const absl::Status& cause) override {
    const std::lock_guard<std::mutex> lock(stream_.mutex_);
    stream_.aborts_ += std::string(cause.message());
  }

 private:
  FakeStream& stream_;
};

using DeviceBody = std::function<void(Engine&, FakeStream&, Problems&)>;

// Two ranks, each with a device; they leave at the body's end.
inline std::string RunDevices(const DeviceBody& body, const EngineConfig& config = {},
                              const std::vector<HostShape>& hosts = {{"a", 2}}) {
  FakeStream streams[2];
  return RunWorlds(hosts, [&](std::unique_ptr<EpochWorld> world, Problems& problems) {
    FakeStream& stream = streams[world->rank()];
    auto tuner = Tuner::Make({world->rank(), hosts.size() > 1}, config);
    Engine engine(std::move(world), config,
                  {.tuner = *std::move(tuner), .device = std::make_unique<FakeDevice>(&stream)});
    body(engine, stream, problems);
    engine.Shutdown();
  });
}

// A sum that lies on the device; its memory is never looked at.
inline void FillDeviceSum(Request* request, const std::string& name, std::vector<float>* data) {
  FillSum(request, name, data);
  request->signature.device_type = HVD_CUDA;
}

inline absl::Status DeviceSum(Engine& engine, const std::string& name) {
  std::vector<float> data(1000);
  Request request;
  FillDeviceSum(&request, name, &data);
  return engine.Run(&request);
}

}  // namespace hvd::rt::test
