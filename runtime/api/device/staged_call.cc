#include "runtime/api/device/staged_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd {
namespace {

// A request of the call as the ranks agree on it: everything but the bytes.
std::unique_ptr<Request> Announcement(const Request& asked) {
  auto made = std::make_unique<Request>();
  made->name = asked.name;
  made->unnamed = asked.unnamed;
  made->signature = asked.signature;
  made->signature.agrees_only = 1;
  made->root_index = asked.root_index;
  return made;
}

}  // namespace

StagedCall::StagedCall(const StagedParts& parts,
                       absl::Span<const std::unique_ptr<Request>> requests, const Membership& set)
    : parts_(parts),
      requests_(requests),
      set_({set.id, {}, set.index}),
      name_(requests[0]->name),
      on_host_(requests[0]->buffers.device.waits_on_host),
      plan_(PlanStaging(requests, {set.index, set.size()})),
      begin_{StagedStep::Kind::kBegin, 0, this, parts.inbox},
      back_{StagedStep::Kind::kBack, 0, this, parts.inbox} {
  for (const auto& request : requests) {
    if (IsPair(request->signature.kind)) continue;
    Head& head = heads_.emplace_back();
    head.agreed.step = {StagedStep::Kind::kAgreed, heads_.size() - 1, this, parts.inbox};
    announced_.push_back(Announcement(*request));
    announced_.back()->observer = &head.agreed;
  }
}

StagedCall::~StagedCall() {
  if (!done_event_.valid() && ready_.empty()) return;
  const GpuDevice::Scope scope(*parts_.device);
  done_event_ = {};
  ready_.clear();
}

absl::Status StagedCall::Prepare() {
  const GpuDevice::Scope scope(*parts_.device);
  for (const auto& request : requests_) {
    const DevicePlace& place = request->buffers.device;
    ready_event_ = place.ready_event;
    if (!request->signature.is_group()) streams_.push_back(place.stream);
    for (const RequestPart& part : request->buffers.parts) streams_.push_back(part.stream);
  }
  std::sort(streams_.begin(), streams_.end());
  streams_.erase(std::unique(streams_.begin(), streams_.end()), streams_.end());
  for (void* stream : streams_) {
    if (absl::Status noted = NoteOrder(stream); !noted.ok()) return noted;
  }
  auto memory = parts_.staging->Take(plan_.bytes, parts_.device);
  if (!memory.ok()) return memory.status();
  memory_ = *memory;
  return absl::OkStatus();
}

absl::Status StagedCall::NoteOrder(void* stream) {
  auto* const handle = static_cast<CudaStream>(stream);
  const CudaDriver& driver = parts_.device->driver();
  CudaCapture state = kCudaNotCapturing;
  absl::Status asked =
      driver.Check(parts_.device->calls().capture_state(handle, &state), "cuStreamIsCapturing");
  if (asked.ok() && state != kCudaNotCapturing) {
    asked = absl::UnimplementedError(
        "the tensor's stream is being captured into a CUDA graph, and a graph cannot hold calls "
        "that other ranks take part in; call hvd outside the capture");
  }
  if (!asked.ok() || ready_event_ != nullptr) return asked;
  auto event = parts_.device->TakeEvent();
  if (!event.ok()) return event.status();
  ready_.push_back(*std::move(event));
  return ready_.back().Record(handle);
}

absl::Status StagedCall::Announce(Engine* engine) {
  observed_ = requests_[0]->observer != nullptr;
  if (announced_.empty()) return absl::OkStatus();
  return announced_.size() == 1 ? engine->Submit(announced_[0].get())
                                : engine->SubmitGroup(announced_);
}

bool StagedCall::WaitUntil(Clock::time_point end) {
  if (is_done()) return true;
  const MutexLock lock(&mutex_);
  while (!is_done()) {
    if (end == Clock::time_point::max()) {
      changed_.Wait(&mutex_);
    } else if (!changed_.WaitUntil(&mutex_, end)) {
      return is_done();
    }
  }
  return true;
}

absl::Status StagedCall::Wait() {
  (void)WaitUntil(Clock::time_point::max());
  {
    const MutexLock lock(&mutex_);
    while (on_host_ && !finished_) changed_.Wait(&mutex_);
    if (!status_.ok()) return status_;
  }
  for (void* stream : streams_) {
    if (absl::Status ordered = WaitOn(stream); !ordered.ok()) return ordered;
  }
  return absl::OkStatus();
}

absl::Status StagedCall::WaitOn(void* stream) {
  (void)WaitUntil(Clock::time_point::max());
  {
    const MutexLock lock(&mutex_);
    if (!status_.ok() || !done_event_.valid()) return status_;
  }
  const GpuDevice::Scope scope(*parts_.device);
  return done_event_.MakeWait(static_cast<CudaStream>(stream));
}

// The executor calls it, while other ranks wait.
void* StagedCall::GiveHostMemory(void* call, const int64_t* shape, int32_t ndim, int32_t dtype,
                                 int32_t index) {
  size_t bytes = DtypeBytes(static_cast<hvd_dtype_t>(dtype));
  for (int32_t d = 0; d < ndim; ++d) bytes *= static_cast<size_t>(shape[d]);
  return static_cast<StagedCall*>(call)->HostMemoryFor(index, bytes);
}

void* StagedCall::HostMemoryFor(int32_t index, size_t bytes) {
  const auto taken = parts_.staging->Take(bytes, parts_.device);
  if (!taken.ok()) return nullptr;
  const MutexLock lock(&results_mutex_);
  results_[index] = *taken;
  return taken->memory;
}

}  // namespace hvd
