// The C ABI's timeline: hvdrun writes one file for all ranks, whoever asks for it.
#include "runtime/api/errors.h"
#include "runtime/api/process.h"

namespace hvd {
namespace {

hvd_status_t AskTimeline(const char* path) {
  return Guarded([path]() -> hvd_status_t {
    if (Process::Get().engine() == nullptr) return NotInitialized();
    return Return(Process::Get().AskTimeline(path));
  });
}

}  // namespace
}  // namespace hvd

extern "C" {

hvd_status_t hvd_start_timeline(const char* path) {
  if (path == nullptr || *path == 0) return hvd::Fail(HVD_ERR_INVALID, "path is NULL or empty");
  return hvd::AskTimeline(path);
}

hvd_status_t hvd_stop_timeline(void) { return hvd::AskTimeline(""); }

}  // extern "C"
