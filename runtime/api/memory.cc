// hvd_alloc and hvd_free: the process's arena. Both work before hvd_init and after hvd_shutdown.
#include "hvd/hvd.h"
#include "runtime/api/errors.h"
#include "runtime/api/process.h"

extern "C" hvd_status_t hvd_alloc(size_t bytes, void** memory) {
  return hvd::Guarded([&]() -> hvd_status_t {
    if (memory == nullptr) return hvd::Fail(HVD_ERR_INVALID, "hvd_alloc: memory is NULL");
    *memory = nullptr;
    if (hvd::Process::forked()) {
      return hvd::Fail(HVD_ERR_UNSUPPORTED,
                       "hvd_alloc: this process was forked from one that has used hvd; use other "
                       "memory, or start it with exec");
    }
    auto taken = hvd::Process::Get().arena().Allocate(bytes);
    if (!taken.ok()) return hvd::Return(taken.status());
    *memory = *taken;
    return HVD_OK;
  });
}

extern "C" hvd_status_t hvd_free(void* memory) {
  return hvd::Guarded([&]() -> hvd_status_t {
    // A forked child has a copy, which ends with it.
    if (hvd::Process::forked()) return HVD_OK;
    return hvd::Return(hvd::Process::Get().arena().Free(memory));
  });
}
