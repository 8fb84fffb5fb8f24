// SPDX-License-Identifier: Apache-2.0
// hvd_bucket_*: checks, and a Bucket behind the pointer.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "runtime/api/calls.h"
#include "runtime/api/process/process.h"
#include "runtime/bucket/bucket.h"
#include "runtime/check/check_tensor.h"
#include "runtime/check/struct_sizes.h"
#include "runtime/collective/collectives.h"

struct hvd_bucket_t {
  std::unique_ptr<hvd::rt::Bucket> bucket;
};

namespace hvd::rt {
namespace {

bool IsDtype(int32_t dtype) { return DtypeBytes(static_cast<hvd_dtype_t>(dtype)) != 0; }

uint64_t CurrentEpoch() { return Process::Get().epoch().number; }

// Buckets without a name are told apart by the order in which they are made.
std::string NextName() {
  static std::atomic<uint64_t> made{0};
  return "bucket " + std::to_string(++made);
}

absl::StatusOr<Bucket::Options> MakeOptions(const hvd_bucket_options_t& given) {
  if (!IsDtype(given.dtype)) {
    return absl::InvalidArgumentError("hvd_bucket_create: dtype " + std::to_string(given.dtype) +
                                      " is no hvd_dtype_t");
  }
  if (given.device_type != HVD_CPU && given.device_type != HVD_CUDA) {
    return absl::InvalidArgumentError("hvd_bucket_create: device_type is the unknown " +
                                      std::to_string(given.device_type));
  }
  if (given.device_type == HVD_CPU && given.device_id != 0) {
    return absl::InvalidArgumentError("hvd_bucket_create: the CPU's device_id is 0, not " +
                                      std::to_string(given.device_id));
  }
  Bucket::Options made;
  made.dtype = static_cast<hvd_dtype_t>(given.dtype);
  made.device_type = static_cast<hvd_device_type_t>(given.device_type);
  made.device_id = given.device_id;
  made.compared = (given.flags & HVD_BUCKET_COMPARED) != 0;
  absl::Status read =
      CopyKnown("hvd_bucket_create: options.reduction", given.reduction, &made.reduction);
  if (!read.ok()) return read;
  if (made.reduction.ready_event != nullptr) {
    return absl::InvalidArgumentError(
        "hvd_bucket_create: options.reduction.ready_event must be NULL; each tensor has its own "
        "time (hvd_bucket_ready_on)");
  }
  if (absl::Status told = CheckTelling(made.reduction, false); !told.ok()) return told;
  const char* name = made.reduction.name;
  if (absl::Status named = CheckName(name); !named.ok()) return named;
  made.name = name != nullptr && *name != '\0' ? name : NextName();
  made.reduction.name = nullptr;
  if (made.reduction.contents != nullptr) made.contents = made.reduction.contents;
  made.reduction.contents = nullptr;
  return made;
}

hvd_status_t Create(absl::Span<const int64_t> counts, const hvd_bucket_options_t& options,
                    hvd_bucket_t** bucket) {
  const std::shared_ptr<Engine> engine = Process::Get().engine();
  if (engine == nullptr) return NotInitialized();
  absl::StatusOr<Bucket::Options> made = MakeOptions(options);
  if (!made.ok()) return Return(made.status());
  const size_t chunk_bytes = options.chunk_bytes > 0
                                 ? options.chunk_bytes
                                 : static_cast<size_t>(engine->config().bucket_bytes);
  auto plan = PlanBucket(counts, DtypeBytes(made->dtype), chunk_bytes);
  if (!plan.ok()) return Return(plan.status());
  Process& process = Process::Get();
  auto created = Bucket::Create(*std::move(plan), *std::move(made),
                                {&process.arena(), &process.devices().gpus(), CurrentEpoch});
  if (!created.ok()) return Return(created.status());
  *bucket = new hvd_bucket_t{*std::move(created)};
  return HVD_OK;
}

hvd_status_t NoBucket() { return Fail(HVD_ERR_INVALID, "bucket is NULL"); }

hvd_status_t CheckTimedWait(const hvd_bucket_t* bucket, int64_t microseconds, int32_t* done) {
  if (bucket == nullptr) return NoBucket();
  if (done == nullptr) return Fail(HVD_ERR_INVALID, "done is NULL");
  *done = 0;
  return microseconds < 0 ? NegativeTime() : HVD_OK;
}

}  // namespace
}  // namespace hvd::rt

extern "C" {

hvd_status_t hvd_bucket_create(const int64_t* counts, int32_t count,
                               const hvd_bucket_options_t* options, hvd_bucket_t** bucket) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (bucket == nullptr) return hvd::rt::NoBucket();
    *bucket = nullptr;
    if (count < 0 || (count > 0 && counts == nullptr)) {
      return hvd::rt::Fail(HVD_ERR_INVALID, "hvd_bucket_create: counts must hold `count` numbers");
    }
    hvd_bucket_options_t all = HVD_BUCKET_OPTIONS_INIT;
    const absl::Status read = hvd::rt::CopyKnown("hvd_bucket_create: options", options, &all);
    if (!read.ok()) return hvd::rt::Return(read);
    if ((all.flags & ~HVD_BUCKET_COMPARED) != 0) {
      return hvd::rt::Fail(HVD_ERR_INVALID, "options.flags must be 0 or HVD_BUCKET_COMPARED, not " +
                                                std::to_string(all.flags));
    }
    return hvd::rt::Create({counts, static_cast<size_t>(count)}, all, bucket);
  });
}

hvd_status_t hvd_bucket_view(const hvd_bucket_t* bucket, int32_t index, void** data) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (bucket == nullptr) return hvd::rt::NoBucket();
    if (data == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "hvd_bucket_view: data is NULL");
    *data = bucket->bucket->View(index);
    if (*data != nullptr) return HVD_OK;
    return hvd::rt::Fail(HVD_ERR_INVALID, "the bucket has no tensor " + std::to_string(index));
  });
}

hvd_status_t hvd_bucket_ready(hvd_bucket_t* bucket, int32_t index) {
  return hvd_bucket_ready_on(bucket, index, nullptr);
}

hvd_status_t hvd_bucket_ready_on(hvd_bucket_t* bucket, int32_t index, void* stream) {
  return hvd::rt::Guarded([&] {
    return bucket == nullptr ? hvd::rt::NoBucket() : bucket->bucket->Ready(index, stream);
  });
}

hvd_status_t hvd_bucket_put(hvd_bucket_t* bucket, int32_t index, const hvd_tensor_t* source) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (bucket == nullptr) return hvd::rt::NoBucket();
    if (source == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "source is NULL");
    return bucket->bucket->Put(index, *source);
  });
}

hvd_status_t hvd_bucket_wait_for(hvd_bucket_t* bucket, int64_t microseconds, int32_t* done) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    const hvd_status_t checked = hvd::rt::CheckTimedWait(bucket, microseconds, done);
    return checked == HVD_OK ? bucket->bucket->WaitUntil(hvd::rt::EndOf(microseconds), done)
                             : checked;
  });
}

hvd_status_t hvd_bucket_wait_tensor(hvd_bucket_t* bucket, int32_t index, int64_t microseconds,
                                    int32_t* done) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    const hvd_status_t checked = hvd::rt::CheckTimedWait(bucket, microseconds, done);
    return checked == HVD_OK ? bucket->bucket->WaitTensor(index, hvd::rt::EndOf(microseconds), done)
                             : checked;
  });
}

hvd_status_t hvd_bucket_wait(hvd_bucket_t* bucket) {
  return hvd::rt::Guarded(
      [&] { return bucket == nullptr ? hvd::rt::NoBucket() : bucket->bucket->Wait(); });
}

hvd_status_t hvd_bucket_wait_on(hvd_bucket_t* bucket, void* stream) {
  return hvd::rt::Guarded(
      [&] { return bucket == nullptr ? hvd::rt::NoBucket() : bucket->bucket->WaitOn(stream); });
}

hvd_status_t hvd_bucket_reset(hvd_bucket_t* bucket) {
  return hvd::rt::Guarded(
      [&] { return bucket == nullptr ? hvd::rt::NoBucket() : bucket->bucket->Reset(); });
}

void hvd_bucket_destroy(hvd_bucket_t* bucket) { delete bucket; }

}  // extern "C"
