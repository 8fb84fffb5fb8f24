#include "runtime/engine/thresholds.h"

namespace hvd {

HierarchicalThresholds ThresholdsOf(const EngineConfig& config) {
  HierarchicalThresholds thresholds;
  thresholds.host.one_shot_bytes = static_cast<size_t>(config.one_shot_bytes);
  thresholds.host.staged_piece_bytes = static_cast<size_t>(config.piece_bytes);
  thresholds.rails_bytes = static_cast<size_t>(config.rails_bytes);
  thresholds.message.ring_bytes = static_cast<size_t>(config.ring_bytes);
  thresholds.message.segment_bytes = static_cast<size_t>(config.segment_bytes);
  thresholds.message.deterministic = config.deterministic;
  return thresholds;
}

}  // namespace hvd
