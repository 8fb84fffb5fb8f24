// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/ucx/ucx_library.h"

#include <dlfcn.h>
#include <signal.h>

#include <array>
#include <string>

namespace hvd::rt {
namespace {

// UCX takes over SIGSEGV, SIGILL, SIGBUS and SIGFPE as it is loaded; the handlers are the user's.
class SignalActions {
 public:
  SignalActions() {
    for (int number = 1; number < NSIG; ++number) {
      known_[number] = sigaction(number, nullptr, &actions_[number]) == 0;
    }
  }
  ~SignalActions() {
    for (int number = 1; number < NSIG; ++number) {
      if (known_[number]) sigaction(number, &actions_[number], nullptr);
    }
  }
  SignalActions(const SignalActions&) = delete;
  SignalActions& operator=(const SignalActions&) = delete;

 private:
  std::array<struct sigaction, NSIG> actions_{};
  std::array<bool, NSIG> known_{};
};

template <class Function>
void Find(void* library, const char* name, Function* function, std::string* missing) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr && missing->empty()) *missing = name;
}

absl::StatusOr<UcxLibrary> Load() {
  void* library = nullptr;
  {
    const SignalActions keep;
    library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    return absl::NotFoundError(std::string("UCX, which carries data between hosts, is not here (") +
                               dlerror() +
                               "); install libucx0, or put its folder on "
                               "LD_LIBRARY_PATH");
  }
  UcxLibrary ucx;
  std::string missing;
  Find(library, "ucp_get_version_string", &ucx.get_version_string, &missing);
  Find(library, "ucp_config_read", &ucx.config_read, &missing);
  Find(library, "ucp_config_modify", &ucx.config_modify, &missing);
  Find(library, "ucp_config_release", &ucx.config_release, &missing);
  Find(library, "ucp_init_version", &ucx.init_version, &missing);
  Find(library, "ucp_cleanup", &ucx.cleanup, &missing);
  Find(library, "ucp_worker_create", &ucx.worker_create, &missing);
  Find(library, "ucp_worker_destroy", &ucx.worker_destroy, &missing);
  Find(library, "ucp_worker_flush_nbx", &ucx.worker_flush_nbx, &missing);
  Find(library, "ucp_worker_get_address", &ucx.worker_get_address, &missing);
  Find(library, "ucp_worker_release_address", &ucx.worker_release_address, &missing);
  Find(library, "ucp_worker_get_efd", &ucx.worker_get_efd, &missing);
  Find(library, "ucp_worker_arm", &ucx.worker_arm, &missing);
  Find(library, "ucp_worker_progress", &ucx.worker_progress, &missing);
  Find(library, "ucp_ep_create", &ucx.ep_create, &missing);
  Find(library, "ucp_tag_send_nbx", &ucx.tag_send_nbx, &missing);
  Find(library, "ucp_tag_recv_nbx", &ucx.tag_recv_nbx, &missing);
  Find(library, "ucp_tag_recv_request_test", &ucx.tag_recv_request_test, &missing);
  Find(library, "ucp_request_check_status", &ucx.request_check_status, &missing);
  Find(library, "ucp_request_cancel", &ucx.request_cancel, &missing);
  Find(library, "ucp_request_free", &ucx.request_free, &missing);
  Find(library, "ucs_status_string", &ucx.status_string, &missing);
  Find(library, "ucs_global_opts_set_value", &ucx.global_opts_set_value, &missing);
  if (missing.empty()) return ucx;
  return absl::NotFoundError("the UCX found here (" +
                             std::string(ucx.get_version_string != nullptr
                                             ? ucx.get_version_string()
                                             : "version unknown") +
                             ") has no " + missing + "; 1.13 or newer is needed");
}

}  // namespace

absl::StatusOr<const UcxLibrary*> LoadUcx() {
  static const absl::StatusOr<UcxLibrary> library = Load();
  if (!library.ok()) return library.status();
  return &*library;
}

}  // namespace hvd::rt
