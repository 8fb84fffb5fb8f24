// SPDX-License-Identifier: Apache-2.0
// The store of torchrun: the one at MASTER_ADDR and MASTER_PORT, of torch.distributed's TCPStore,
// which torchrun's agent serves.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/adoption/launcher_store.h"

namespace hvd::rt {

struct TorchStorePlace {
  std::string host;
  int port = 0;
  std::string prefix;  // of hvd's keys, another one for each restart: "hvd/0/"
  int rank = 0;
  int size = 0;
  bool serves = false;  // this process would have to serve it itself: nobody else does
};

// Unimplemented: it serves. Nothing is sent before Exchange.
absl::StatusOr<std::unique_ptr<LauncherStore>> OpenTorchStore(const TorchStorePlace& place);

}  // namespace hvd::rt
