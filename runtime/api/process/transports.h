// SPDX-License-Identifier: Apache-2.0
// Makes the transport between hosts that the settings and the machine ask for.
#pragma once

#include "runtime/engine/epoch_world.h"
#include "runtime/engine/tuning/config.h"

namespace hvd::rt {

TransportFactory TransportsFor(const EngineConfig& config);

}  // namespace hvd::rt
