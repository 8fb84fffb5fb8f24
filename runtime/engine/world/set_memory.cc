// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/world/set_memory.h"

#include <utility>

#include "runtime/collective/host/host_collectives.h"
#include "runtime/engine/agreement/board.h"
#include "runtime/engine/direct/direct.h"

namespace hvd::rt {
namespace {

size_t Aligned(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace

SetMemory::Shape SetMemory::ShapeOf(const Topology& set, int host) {
  const int here = set.hosts()[host].ranks;
  Shape shape;
  shape.collectives = Aligned(Board::Bytes(here, set.size()));
  shape.pairs = shape.collectives + Aligned(HostCollectives::HostRegionBytes(here));
  shape.direct = shape.pairs + Aligned(PairPlaces::Bytes(here));
  shape.bytes = shape.direct + (set.hosts().size() > 1 ? 0 : Direct::Bytes(here));
  return shape;
}

size_t SetMemory::FirstBytes(const Topology& job, int host) {
  return HostPageBytes(job.hosts()[host].ranks) + ShapeOf(job, host).bytes;
}

absl::Status SetMemory::Map(HostMemory* memory) {
  const SetPlace& set = seat_.set();
  const absl::StatusOr<uint64_t> at =
      set.memory_at != 0 ? set.memory_at : memory->PlaceOfRegion(set.region, bytes());
  if (!at.ok()) return at.status();
  absl::StatusOr<std::shared_ptr<std::byte>> mapped = memory->Map(*at, bytes());
  if (!mapped.ok()) return mapped.status();
  mapped_ = *std::move(mapped);
  at_ = mapped_.get();
  return absl::OkStatus();
}

void SetMemory::GiveBack(HostMemory* memory) const {
  HostPairLink::GiveBack(pairs(), memory);
  const SetPlace& set = seat_.set();
  if (set.memory_at != 0) return memory->Give(set.memory_at, bytes());
  memory->GiveRegion(set.region, bytes());
}

}  // namespace hvd::rt
