// The settings of the collectives, as they understand them.
#pragma once

#include "runtime/collective/hierarchical_collectives.h"
#include "runtime/engine/config.h"

namespace hvd {

HierarchicalThresholds ThresholdsOf(const EngineConfig& config);

}  // namespace hvd
