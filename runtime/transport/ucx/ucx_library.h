// SPDX-License-Identifier: Apache-2.0
// libucp, found at run time, so that jobs of one host need no UCX.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>

#include "absl/status/statusor.h"

namespace hvd::rt {

// UCX's functions by their own names without the prefix.
struct UcxLibrary {
  decltype(&::ucp_get_version_string) get_version_string;
  decltype(&::ucp_config_read) config_read;
  decltype(&::ucp_config_modify) config_modify;
  decltype(&::ucp_config_release) config_release;
  decltype(&::ucp_init_version) init_version;
  decltype(&::ucp_cleanup) cleanup;
  decltype(&::ucp_worker_create) worker_create;
  decltype(&::ucp_worker_destroy) worker_destroy;
  decltype(&::ucp_worker_flush_nbx) worker_flush_nbx;
  decltype(&::ucp_worker_get_address) worker_get_address;
  decltype(&::ucp_worker_release_address) worker_release_address;
  decltype(&::ucp_worker_get_efd) worker_get_efd;
  decltype(&::ucp_worker_arm) worker_arm;
  decltype(&::ucp_worker_progress) worker_progress;
  decltype(&::ucp_ep_create) ep_create;
  decltype(&::ucp_tag_send_nbx) tag_send_nbx;
  decltype(&::ucp_tag_recv_nbx) tag_recv_nbx;
  decltype(&::ucp_tag_recv_request_test) tag_recv_request_test;
  decltype(&::ucp_request_check_status) request_check_status;
  decltype(&::ucp_request_cancel) request_cancel;
  decltype(&::ucp_request_free) request_free;
  decltype(&::ucs_status_string) status_string;
  decltype(&::ucs_global_opts_set_value) global_opts_set_value;
};

// Loaded once and never unloaded: UCX leaves threads' data and memory hooks behind. NotFound where
// it is not installed.
absl::StatusOr<const UcxLibrary*> LoadUcx();

}  // namespace hvd::rt
