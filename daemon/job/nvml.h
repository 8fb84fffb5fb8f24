// The host's GPUs, asked of NVIDIA's management library if it is there.
#pragma once

#include <string>
#include <vector>

namespace hvd {

struct Gpu {
  std::string uuid;    // "GPU-…"
  std::string bus_id;  // "00000000:3B:00.0"
};

// Ordered by bus id, so that an index means the same card to everybody. Empty: no library or no
// GPU.
std::vector<Gpu> FindGpus(const char* library = "libnvidia-ml.so.1");

// UUIDs of the GPUs that `mask`, an inherited CUDA_VISIBLE_DEVICES, leaves: indexes or (shortened)
// UUIDs; as in CUDA, the first entry that names none ends the list. Null: no mask. Pure.
std::vector<std::string> VisibleGpus(const std::vector<Gpu>& gpus, const char* mask);

}  // namespace hvd
