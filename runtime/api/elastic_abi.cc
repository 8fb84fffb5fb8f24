// SPDX-License-Identifier: Apache-2.0
// The C ABI of elastic jobs but for the state (state_abi.cc) and hvd_reset (api.cc).
#include <cstring>

#include "runtime/api/process/process.h"
#include "runtime/check/struct_sizes.h"
#include "runtime/errors/errors.h"
#include "runtime/state/elastic/agreement.h"

extern "C" {

hvd_status_t hvd_epoch(hvd_epoch_t* epoch) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (epoch == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "epoch is NULL");
    if (absl::Status fits = hvd::rt::CheckSize("epoch", *epoch); !fits.ok())
      return hvd::rt::Return(fits);
    hvd::rt::Process& process = hvd::rt::Process::Get();
    hvd_epoch_t current = hvd::rt::Process::forked() ? hvd_epoch_t() : process.epoch();
    if (current.number == 0) return hvd::rt::NotInitialized();
    current.struct_size = epoch->struct_size;
    std::memcpy(epoch, &current, current.struct_size);
    if (hvd_is_elastic() == 0) epoch->commit = process.state_home().newest();
    return HVD_OK;
  });
}

// Under the state's mutex: a commit on another thread is an agreement of the same name.
hvd_status_t hvd_check_hosts(void) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    hvd::rt::Process& process = hvd::rt::Process::Get();
    if (process.engine() == nullptr) return hvd::rt::NotInitialized();
    const hvd::MutexLock lock(&process.state_home().mutex());
    const auto agreed = hvd::rt::Agree({hvd::rt::kChecks}, process.sets());
    if (!agreed.ok()) return hvd::rt::Return(agreed.status());
    if (agreed->verdict == hvd::rt::AgreementVerdict::kDiffers) {
      return hvd::rt::Fail(HVD_ERR_MISMATCH, agreed->why);
    }
    return agreed->verdict == hvd::rt::AgreementVerdict::kChange
               ? hvd::rt::Fail(HVD_ERR_HOSTS_UPDATED, hvd::rt::kHostsUpdated)
               : HVD_OK;
  });
}

int32_t hvd_slot(void) { return hvd::rt::Process::Get().share(); }

// Where the daemon does not answer, hvd_init says so.
int32_t hvd_is_elastic(void) {
  int32_t is_elastic = 0;
  (void)hvd::rt::Guarded([&]() -> hvd_status_t {
    const auto answer = hvd::rt::Process::Get().IsElastic();
    is_elastic = answer.ok() && *answer ? 1 : 0;
    return HVD_OK;
  });
  return is_elastic;
}

}  // extern "C"
