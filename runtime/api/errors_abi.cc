// SPDX-License-Identifier: Apache-2.0
// The C ABI's words about errors: the calling thread's last one, and the codes' names.
#include "runtime/errors/errors.h"

extern "C" const char* hvd_last_error(void) { return hvd::rt::LastMessage(); }

extern "C" hvd_status_t hvd_last_error_info(hvd_error_info_t* info) {
  if (info == nullptr || info->struct_size != sizeof(*info)) return HVD_ERR_INVALID;
  *info = hvd::rt::LastErrorInfo();
  return HVD_OK;
}

extern "C" const char* hvd_status_name(hvd_status_t status) {
  switch (status) {
    case HVD_OK:
      return "HVD_OK";
    case HVD_ERR_INVALID:
      return "HVD_ERR_INVALID";
    case HVD_ERR_NOT_INITIALIZED:
      return "HVD_ERR_NOT_INITIALIZED";
    case HVD_ERR_MISMATCH:
      return "HVD_ERR_MISMATCH";
    case HVD_ERR_DUPLICATE:
      return "HVD_ERR_DUPLICATE";
    case HVD_ERR_ABORTED:
      return "HVD_ERR_ABORTED";
    case HVD_ERR_UNSUPPORTED:
      return "HVD_ERR_UNSUPPORTED";
    case HVD_ERR_TIMEOUT:
      return "HVD_ERR_TIMEOUT";
    case HVD_ERR_LAUNCH:
      return "HVD_ERR_LAUNCH";
    case HVD_ERR_INTERNAL:
      return "HVD_ERR_INTERNAL";
    case HVD_ERR_HOSTS_UPDATED:
      return "HVD_ERR_HOSTS_UPDATED";
    case HVD_ERR_REMOVED:
      return "HVD_ERR_REMOVED";
  }
  return "unknown hvd_status_t";
}
