// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/errors.h"

#include "base/printable.h"
#include "runtime/api/process.h"

namespace hvd {
namespace {

struct LastError {
  std::string message;
  hvd_status_t code = HVD_OK;
  int rank = -1;
  std::string host;
  std::string name;
};
thread_local LastError last_error;

// Whose end, or whose doing, the abort is that this process has heard of.
void NoteCulprit() {
  const std::shared_ptr<Engine> engine = Process::Get().engine();
  if (engine == nullptr) return;
  const int rank = CauseOf(*engine->world().page()).rank;
  const Topology& topology = engine->world().topology();
  if (rank < 0 || rank >= topology.size()) return;
  last_error.rank = rank;
  last_error.host = topology.hosts()[topology.place(rank).host].name;
}

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
    case absl::StatusCode::kCancelled:
      return HVD_ERR_REMOVED;
    default:
      return HVD_ERR_INTERNAL;
  }
}

}  // namespace

hvd_status_t Fail(hvd_status_t code, std::string message) {
  last_error = LastError();
  last_error.message = PrintableLines(message);  // whoever named what it speaks of
  last_error.code = code;
  return code;
}

hvd_status_t Return(const absl::Status& status) {
  if (status.ok()) return HVD_OK;
  const hvd_status_t code = Fail(Code(status), std::string(status.message()));
  if (code == HVD_ERR_ABORTED) NoteCulprit();
  return code;
}

hvd_status_t NoteName(hvd_status_t code, std::string_view name) {
  if (code != HVD_OK) last_error.name = IsReserved(name) ? "" : PrintableLines(name);
  return code;
}

hvd_status_t ReturnExecuted(const absl::Status& status) {
  const hvd_status_t code = Return(status);
  if (code != HVD_ERR_INVALID) return code;
  return last_error.code = HVD_ERR_MISMATCH;
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

extern "C" const char* hvd_last_error(void) { return hvd::last_error.message.c_str(); }

extern "C" hvd_status_t hvd_last_error_info(hvd_error_info_t* info) {
  if (info == nullptr || info->struct_size != sizeof(*info)) return HVD_ERR_INVALID;
  const hvd::LastError& last = hvd::last_error;
  *info = {sizeof(*info),     last.code,         last.rank,
           last.host.c_str(), last.name.c_str(), last.message.c_str()};
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
