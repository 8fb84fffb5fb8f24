// SPDX-License-Identifier: Apache-2.0
// What the classes of link B have in common: all of it belongs to the LinkServer, outlives them,
// and is touched by the links thread alone.
#pragma once

#include <functional>

#include "base/loop.h"
#include "daemon/connections/connections.h"
#include "daemon/members/host_epochs.h"
#include "daemon/members/worker_slot.h"
#include "hvd/v1/link_a.pb.h"

namespace hvd::daemon {

struct LinkParts {
  Loop* loop;
  Connections* connections;
  HostEpochs* epochs;
  WorkerSlots* workers;
  bool elastic = false;                     // members come and go, and slots are used again
  std::function<void(v1::Event)> on_event;  // for the driver
};

}  // namespace hvd::daemon
