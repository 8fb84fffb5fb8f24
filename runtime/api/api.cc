// SPDX-License-Identifier: Apache-2.0
// The C ABI's life: joining and leaving the job, what it looks like, and the process's memory,
// which is there before hvd_init and after hvd_shutdown, too.
#include <cstddef>

#include "runtime/api/process/process.h"
#include "runtime/check/struct_sizes.h"
#include "runtime/errors/errors.h"

namespace hvd::rt {
namespace {

hvd_status_t ReadInitOptions(const hvd_init_options_t* given, StaticSets* sets) {
  hvd_init_options_t known = HVD_INIT_OPTIONS_INIT;
  if (absl::Status read = CopyKnown("options", given, &known); !read.ok()) return Return(read);
  const hvd_init_options_t* const options = &known;
  if (options->reserved != 0) return Fail(HVD_ERR_INVALID, "options.reserved is not 0");
  if (options->process_set_count < 0) {
    return Fail(HVD_ERR_INVALID, "options.process_set_count is negative");
  }
  if (options->process_set_count > 0 &&
      (options->process_sets == nullptr || options->process_set_sizes == nullptr)) {
    return Fail(HVD_ERR_INVALID, "options.process_sets or options.process_set_sizes is NULL");
  }
  for (int i = 0; i < options->process_set_count; ++i) {
    const int32_t* ranks = options->process_sets[i];
    const int32_t size = options->process_set_sizes[i];
    if (ranks == nullptr || size < 1) {
      return Fail(HVD_ERR_INVALID, "options.process_sets[" + std::to_string(i) + "] is empty");
    }
    sets->emplace_back(ranks, ranks + size);
  }
  return HVD_OK;
}

template <class Get>
int32_t Ask(Get get) {
  const ProcessSets& sets = Process::Get().sets();
  const ProcessSet* global = Process::forked() ? nullptr : sets.EnterGlobal();
  if (global == nullptr) return -1;
  const auto answer = static_cast<int32_t>(get(global->engine->world()));
  sets.LeaveGlobal();
  return answer;
}

// `join`: Process::Init or Reset.
hvd_status_t JoinAs(absl::Status (Process::*join)(const StaticSets&),
                    const hvd_init_options_t* options) {
  if (Process::forked()) return NotInitialized();
  StaticSets sets;
  if (const hvd_status_t code = ReadInitOptions(options, &sets); code != HVD_OK) return code;
  Process& process = Process::Get();
  const absl::Status status = (process.*join)(sets);
  if (status.ok()) return Return(process.AddStaticSets(sets));
  const bool own_code = absl::IsAborted(status) || absl::IsCancelled(status);
  return own_code ? Return(status) : Fail(HVD_ERR_LAUNCH, std::string(status.message()));
}

}  // namespace
}  // namespace hvd::rt

extern "C" {

hvd_status_t hvd_init(const hvd_init_options_t* options) {
  return hvd::rt::Guarded([&] { return hvd::rt::JoinAs(&hvd::rt::Process::Init, options); });
}

hvd_status_t hvd_reset(const hvd_init_options_t* options, hvd_epoch_t* epoch) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (epoch != nullptr) {
      if (absl::Status fits = hvd::rt::CheckSize("epoch", *epoch); !fits.ok())
        return hvd::rt::Return(fits);
    }
    const hvd_status_t code = hvd::rt::JoinAs(&hvd::rt::Process::Reset, options);
    return code == HVD_OK && epoch != nullptr ? hvd_epoch(epoch) : code;
  });
}

hvd_status_t hvd_shutdown(void) {
  return hvd::rt::Guarded([] { return hvd::rt::Return(hvd::rt::Process::Get().Shutdown()); });
}

int32_t hvd_is_initialized(void) { return hvd::rt::Process::Get().engine() != nullptr ? 1 : 0; }

int32_t hvd_rank(void) {
  return hvd::rt::Ask([](const hvd::rt::EpochWorld& world) { return world.rank(); });
}
int32_t hvd_size(void) {
  return hvd::rt::Ask([](const hvd::rt::EpochWorld& world) { return world.topology().size(); });
}
int32_t hvd_local_rank(void) {
  return hvd::rt::Ask([](const hvd::rt::EpochWorld& world) { return world.place().local_rank; });
}
int32_t hvd_local_size(void) {
  return hvd::rt::Ask([](const hvd::rt::EpochWorld& world) { return world.place().local_size; });
}
int32_t hvd_cross_rank(void) {
  return hvd::rt::Ask([](const hvd::rt::EpochWorld& world) { return world.place().cross_rank; });
}
int32_t hvd_cross_size(void) {
  return hvd::rt::Ask([](const hvd::rt::EpochWorld& world) { return world.place().cross_size; });
}
int32_t hvd_is_homogeneous(void) {
  return hvd::rt::Ask(
      [](const hvd::rt::EpochWorld& world) { return world.topology().is_homogeneous() ? 1 : 0; });
}

hvd_status_t hvd_alloc(size_t bytes, void** memory) {
  return hvd_alloc_on(bytes, HVD_CPU, 0, memory);
}

hvd_status_t hvd_alloc_on(size_t bytes, int32_t device_type, int32_t device_id, void** memory) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (memory == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "memory is NULL");
    *memory = nullptr;
    if (hvd::rt::Process::forked()) return hvd::rt::NotInitialized();
    if (device_type != HVD_CPU && device_type != HVD_CUDA) {
      return hvd::rt::Fail(HVD_ERR_INVALID, "hvd_alloc_on: device_type is the unknown " +
                                                std::to_string(device_type));
    }
    auto taken = device_type == HVD_CUDA
                     ? hvd::rt::Process::Get().devices().gpus().Allocate(device_id, bytes)
                     : hvd::rt::Process::Get().arena().Allocate(bytes);
    if (!taken.ok()) return hvd::rt::Return(taken.status());
    *memory = *taken;
    return HVD_OK;
  });
}

hvd_status_t hvd_free(void* memory) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    // A forked child has a copy, which ends with it.
    if (hvd::rt::Process::forked()) return HVD_OK;
    hvd::rt::Gpus& gpus = hvd::rt::Process::Get().devices().gpus();
    return hvd::rt::Return(gpus.DeviceOf(memory) >= 0
                               ? gpus.Free(memory)
                               : hvd::rt::Process::Get().arena().Free(memory));
  });
}

}  // extern "C"
