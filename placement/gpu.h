// SPDX-License-Identifier: Apache-2.0
// The GPUs of a host, and which of them an inherited CUDA_VISIBLE_DEVICES leaves. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hvd {

// A device that a rank can be given: a card, or a MIG instance of one.
struct Gpu {
  std::string uuid;                  // "GPU-…" or "MIG-…"
  std::string name;                  // "NVIDIA H200"
  std::vector<int> near_cores = {};  // in ascending order; empty: not known
};

struct GpuCard {
  std::string bus_id;  // "00000000:3B:00.0"
  Gpu gpu;
  bool in_mig_mode = false;  // only its instances can be used, of which there may be none
  std::vector<Gpu> instances = {};
};

bool IsMigInstance(const Gpu& gpu);

// Returns what hvdd's own environment says of the GPUs that it may give out:
// HVD_CUDA_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES; nothing: all. `environment` holds
// NAME=VALUE.
std::optional<std::string> InheritedMask(absl::Span<const std::string> environment);

// The GPUs of `cards` that `mask` leaves, in its order. As in CUDA, an entry is an index, or a UUID
// or the beginning of just one, and the first that names none ends the list. A card in MIG mode
// stands for its instances. A GPU that is named again is not there twice. No mask: all.
std::vector<Gpu> VisibleGpus(absl::Span<const GpuCard> cards,
                             const std::optional<std::string>& mask);

// "GPU-1a2b3c4d": enough for a person to tell one from another.
std::string ShortUuid(const std::string& uuid);

}  // namespace hvd
