#include "runtime/api/errors.h"

#include "hostfile/printable.h"
#include "runtime/api/process.h"

namespace hvd {
namespace {

thread_local std::string last_error;

hvd_status_t Code(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return HVD_OK;
    case absl::StatusCode::kInvalidArgument:
      return HVD_ERR_INVALID;
    case absl::StatusCode::kFailedPrecondition:
      return HVD_ERR_MISMATCH;
    case absl::StatusCode::kAlreadyExists:
      return HVD_ERR_DUPLICATE;
    case absl::StatusCode::kAborted:
      return HVD_ERR_ABORTED;
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
      return HVD_ERR_UNSUPPORTED;
    case absl::StatusCode::kDeadlineExceeded:
      return HVD_ERR_TIMEOUT;
    default:
      return HVD_ERR_INTERNAL;
  }
}

}  // namespace

hvd_status_t Fail(hvd_status_t code, std::string message) {
  last_error = PrintableLines(message);  // whoever named what it speaks of
  return code;
}

hvd_status_t Return(const absl::Status& status) {
  return status.ok() ? HVD_OK : Fail(Code(status), std::string(status.message()));
}

hvd_status_t ReturnExecuted(const absl::Status& status) {
  const hvd_status_t code = Return(status);
  return code == HVD_ERR_INVALID ? HVD_ERR_MISMATCH : code;
}

hvd_status_t NotInitialized() {
  if (Process::forked()) {
    return Fail(HVD_ERR_NOT_INITIALIZED,
                "this process was forked from one that has used hvd, and cannot use it; start it "
                "with exec instead");
  }
  return Fail(HVD_ERR_NOT_INITIALIZED,
              "hvd is not initialized: call hvd_init, or in C++ hvd::init, first");
}

}  // namespace hvd

extern "C" const char* hvd_last_error(void) { return hvd::last_error.c_str(); }

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
  }
  return "unknown hvd_status_t";
}
