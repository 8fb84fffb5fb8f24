// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bucket/place.h"
#include "runtime/check/check_tensor.h"
#include "runtime/collective/collectives.h"
#include "runtime/device/caller_order.h"
#include "runtime/device/device_memory.h"
#include "runtime/errors/forked.h"

namespace hvd::rt {
namespace {

class DeviceBucketPlace : public BucketPlace {
 public:
  DeviceBucketPlace(Gpus* gpus, std::shared_ptr<GpuDevice> device, size_t chunks)
      : gpus_(*gpus), device_(std::move(device)), chunks_(chunks) {}
  ~DeviceBucketPlace() override;
  absl::Status Begin(size_t bytes);

  std::byte* memory() const override { return memory_; }
  absl::Status Clear(std::byte* begin, size_t bytes) override;
  absl::Status Copy(const hvd_tensor_t& source, const CopyTarget& target,
                    const std::string& what) override;
  absl::Status NoteWriter(size_t chunk, void* stream) override;
  absl::Status PutPlace(size_t chunk, hvd_tensor_t* tensor, hvd_options_t* options) override;
  void EndCall(size_t chunk, hvd_handle_t handle) override;
  absl::Status LetFollow(void* stream) override;

 private:
  // A stream that has written tensors of a chunk in this step; the event stands behind the last of
  // them.
  struct Writer {
    void* stream = nullptr;
    GpuDevice::Event written;
  };
  struct Chunk {
    std::vector<Writer> writers;
    GpuDevice::Event joined;  // behind all writers, where there are several
  };

  absl::Status CopyHere(const hvd_tensor_t& source, const CopyTarget& target,
                        const std::string& what);
  absl::Status CopyWithin(const hvd_tensor_t& source, const CopyTarget& target,
                          const std::string& what);
  absl::Status Join(Chunk* chunk);
  // Returns when all that is on stream_ has happened. In a Scope.
  absl::Status Await();

  absl::Status Check(CudaResult result, const char* what) const {
    return device_->driver().Check(result, what);
  }

  Gpus& gpus_;
  const std::shared_ptr<GpuDevice> device_;
  std::byte* memory_ = nullptr;
  CudaStream stream_ = nullptr;  // the bucket's own; behind all calls that have ended
  std::vector<Chunk> chunks_;
};

absl::Status DeviceBucketPlace::Begin(size_t bytes) {
  absl::StatusOr<void*> memory = gpus_.Allocate(device_->index(), bytes);
  if (!memory.ok()) return memory.status();
  memory_ = static_cast<std::byte*>(*memory);
  const GpuDevice::Scope scope(*device_);
  return Check(device_->calls().create_stream(&stream_, kCudaStreamNonBlocking, 0),
               "cuStreamCreateWithPriority");
}

// A forked child has no GPU, and nothing to give back.
DeviceBucketPlace::~DeviceBucketPlace() {
  if (IsForkedChild()) return;
  {
    const GpuDevice::Scope scope(*device_);
    if (stream_ != nullptr) {
      (void)Await().ok();  // a device that is lost takes all this with it
      device_->calls().destroy_stream(stream_);
    }
    chunks_.clear();
  }
  if (memory_ != nullptr) (void)gpus_.Free(memory_).ok();
}

absl::Status DeviceBucketPlace::Await() {
  auto behind = device_->TakeEvent();
  if (!behind.ok()) return behind.status();
  const absl::Status recorded = behind->Record(stream_);
  return recorded.ok() ? behind->AwaitHere() : recorded;
}

absl::Status DeviceBucketPlace::Clear(std::byte* begin, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const GpuDevice::Scope scope(*device_);
  const absl::Status asked =
      Check(device_->calls().set_bytes(reinterpret_cast<CudaAddress>(begin), 0, bytes, stream_),
            "cuMemsetD8Async");
  return asked.ok() ? Await() : asked;
}

absl::Status DeviceBucketPlace::Copy(const hvd_tensor_t& source, const CopyTarget& target,
                                     const std::string& what) {
  const bool on_gpu = source.device_type == HVD_CUDA;
  if (on_gpu && source.device_id != device_->index()) {
    return absl::InvalidArgumentError(absl::StrCat("source lies ", PlaceOf(source),
                                                   "; the bucket lies on GPU ", device_->index()));
  }
  return on_gpu ? CopyWithin(source, target, what) : CopyHere(source, target, what);
}

absl::Status DeviceBucketPlace::CopyHere(const hvd_tensor_t& source, const CopyTarget& target,
                                         const std::string& what) {
  const size_t bytes = target.count * DtypeBytes(target.dtype);
  std::vector<std::byte> converted(bytes);
  absl::Status copied = CopyConverted(source, {converted.data(), target.dtype, target.count}, what);
  if (!copied.ok() || bytes == 0) return copied;
  const GpuDevice::Scope scope(*device_);
  const absl::Status asked =
      Check(device_->calls().copy_in(reinterpret_cast<CudaAddress>(target.data), converted.data(),
                                     bytes, stream_),
            "cuMemcpyHtoDAsync");
  const absl::Status there = Await();  // `converted` goes
  return asked.ok() ? there : asked;
}

absl::Status DeviceBucketPlace::CopyWithin(const hvd_tensor_t& source, const CopyTarget& target,
                                           const std::string& what) {
  if (absl::Status fits = CheckSource(source, target, what); !fits.ok()) return fits;
  if (source.dtype != target.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("source is of ", DtypeName(static_cast<hvd_dtype_t>(source.dtype)), ", ", what,
                     " of ", DtypeName(target.dtype), "; on a GPU nothing is converted"));
  }
  const size_t bytes = target.count * DtypeBytes(target.dtype);
  if (bytes == 0 || source.data == target.data) return absl::OkStatus();
  const GpuDevice::Scope scope(*device_);
  if (absl::Status lies = CheckOnDevice(*device_, source.data, "source"); !lies.ok()) return lies;
  auto* const stream = static_cast<CudaStream>(source.stream);
  if (absl::Status free = CheckNotCaptured(*device_, stream); !free.ok()) return free;
  return Check(
      device_->calls().copy_within(reinterpret_cast<CudaAddress>(target.data),
                                   reinterpret_cast<CudaAddress>(source.data), bytes, stream),
      "cuMemcpyDtoDAsync");
}

absl::Status DeviceBucketPlace::NoteWriter(size_t chunk, void* stream) {
  const GpuDevice::Scope scope(*device_);
  auto* const handle = static_cast<CudaStream>(stream);
  if (absl::Status free = CheckNotCaptured(*device_, handle); !free.ok()) return free;
  std::vector<Writer>& writers = chunks_[chunk].writers;
  auto writer = std::find_if(writers.begin(), writers.end(),
                             [stream](const Writer& each) { return each.stream == stream; });
  if (writer == writers.end()) {
    auto event = device_->TakeEvent();
    if (!event.ok()) return event.status();
    writer = writers.insert(writers.end(), {stream, *std::move(event)});
  }
  return writer->written.Record(handle);
}

absl::Status DeviceBucketPlace::PutPlace(size_t chunk, hvd_tensor_t* tensor,
                                         hvd_options_t* options) {
  tensor->device_type = HVD_CUDA;
  tensor->device_id = device_->index();
  tensor->stream = stream_;
  std::vector<Writer>& writers = chunks_[chunk].writers;
  if (writers.empty()) return absl::OkStatus();  // the host has written all
  if (writers.size() > 1) {
    if (absl::Status joined = Join(&chunks_[chunk]); !joined.ok()) return joined;
  }
  options->ready_event =
      (writers.size() > 1 ? chunks_[chunk].joined : writers.front().written).handle();
  return absl::OkStatus();
}

absl::Status DeviceBucketPlace::Join(Chunk* chunk) {
  const GpuDevice::Scope scope(*device_);
  auto event = device_->TakeEvent();
  if (!event.ok()) return event.status();
  chunk->joined = *std::move(event);
  absl::Status status;
  for (const Writer& writer : chunk->writers) {
    if (status.ok()) status = writer.written.MakeWait(stream_);
  }
  return status.ok() ? chunk->joined.Record(stream_) : status;
}

// Ignores errors: hvd_wait tells them.
void DeviceBucketPlace::EndCall(size_t chunk, hvd_handle_t handle) {
  std::vector<Writer>& writers = chunks_[chunk].writers;
  for (const Writer& writer : writers) (void)hvd_wait_on(handle, writer.stream);
  const GpuDevice::Scope scope(*device_);
  writers.clear();
  chunks_[chunk].joined = {};
}

absl::Status DeviceBucketPlace::LetFollow(void* stream) {
  const GpuDevice::Scope scope(*device_);
  auto behind = device_->TakeEvent();
  if (!behind.ok()) return behind.status();
  const absl::Status recorded = behind->Record(stream_);
  return recorded.ok() ? behind->MakeWait(static_cast<CudaStream>(stream)) : recorded;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BucketPlace>> MakeDevicePlace(const DevicePlaceOptions& options) {
  auto device = options.gpus->Find(options.device_id);
  if (!device.ok()) return device.status();
  auto place =
      std::make_unique<DeviceBucketPlace>(options.gpus, *std::move(device), options.chunks);
  if (absl::Status begun = place->Begin(options.bytes); !begun.ok()) return begun;
  return place;
}

}  // namespace hvd::rt
