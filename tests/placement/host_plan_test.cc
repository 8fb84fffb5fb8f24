// SPDX-License-Identifier: Apache-2.0
#include "placement/host_plan.h"

#include <catch2/catch.hpp>
#include <numeric>

namespace hvd {
namespace {

using Uuids = std::vector<std::string>;
using Cores = std::vector<int>;

Cores Range(int first, int last) {
  Cores cores(last - first + 1);
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

// Eight cores, of which 0-3 are near the first half of the GPUs and 4-7 near the others.
HostDevices Host(int gpus) {
  HostDevices devices;
  devices.cores = Range(0, 7);
  for (int i = 0; i < gpus; ++i) {
    const bool first = 2 * i < gpus;
    devices.gpus.push_back(
        {"GPU-0000000" + std::to_string(i) + "-9", "NVIDIA A", first ? Range(0, 3) : Range(4, 7)});
  }
  return devices;
}

HostDevices MigHost(int instances) {
  HostDevices devices = Host(instances);
  for (Gpu& gpu : devices.gpus) gpu.uuid.replace(0, 3, "MIG");
  return devices;
}

HostPlan Plan(const HostWish& wish, const HostDevices& devices) {
  const auto plan = PlanHost(wish, devices);
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  return *plan;
}

std::string ErrorOf(const HostWish& wish, const HostDevices& devices) {
  return std::string(PlanHost(wish, devices).status().message());
}

TEST_CASE("each slot has its own GPUs, and sees no others") {
  const HostPlan plan = Plan({2, 2}, Host(4));
  CHECK(plan.slots[0].visible == Uuids{"GPU-00000000-9", "GPU-00000001-9"});
  CHECK(plan.slots[1].visible == Uuids{"GPU-00000002-9", "GPU-00000003-9"});
  CHECK(plan.slots[1].cores == Range(4, 7));
  CHECK(plan.note.empty());
  CHECK(FormatGpus(1, plan.slots[1]) == "GPU-00000002,GPU-00000003 NVIDIA A");
}

TEST_CASE("not asked for, each slot sees all, and its own is at its index") {
  const HostPlan plan = Plan({2, {}}, Host(3));
  CHECK(plan.slots[0].visible.size() == 3);
  CHECK(plan.slots[1].visible == plan.slots[0].visible);
  CHECK(FormatGpus(1, plan.slots[1]) == "GPU-00000001 NVIDIA A (index 1 of 3)");
  CHECK(plan.note.empty());
}

TEST_CASE("fewer than slots and not asked for: they are shared, and that is told") {
  const HostPlan plan = Plan({4, {}}, Host(2));
  CHECK(plan.slots[3].visible.size() == 2);
  CHECK(FormatGpus(3, plan.slots[3]) == "GPU-00000000,GPU-00000001 NVIDIA A (shared)");
  CHECK(plan.slots[3].cores == Cores{6, 7});
  CHECK(plan.note ==
        "2 GPUs for 4 slots: ranks share them (--gpus-per-rank 1 makes that an error, 0 leaves "
        "CUDA_VISIBLE_DEVICES as it is)");
}

TEST_CASE("CUDA shows a process one MIG instance: each slot sees its own") {
  HostPlan plan = Plan({2, {}}, MigHost(3));
  CHECK(plan.slots[1].visible == Uuids{"MIG-00000001-9"});
  CHECK(plan.note.empty());
  plan = Plan({3, {}}, MigHost(2));
  CHECK(plan.slots[2].visible == Uuids{"MIG-00000000-9"});
  CHECK(FormatGpus(2, plan.slots[2]) == "MIG-00000000 NVIDIA A (shared)");
  CHECK(plan.note.find("2 MIG instances for 3 slots") == 0);
  plan = Plan({4, {}}, MigHost(2));
  CHECK(plan.slots[2].cores == Cores{2, 3});
  CHECK(plan.slots[1].cores == Cores{4, 5});
  CHECK(ErrorOf({1, 2}, MigHost(2)) ==
        "--gpus-per-rank 2: this host has MIG instances (MIG-00000000, …), and CUDA shows a "
        "process one of them only; give --gpus-per-rank 1");
}

TEST_CASE("too few are an error with both numbers and the next step") {
  CHECK(ErrorOf({4, 1}, Host(2)) ==
        "--gpus-per-rank 1 needs 4 GPUs for 4 slots, and this host has 2 GPUs; give this host at "
        "most 2 slots");
  CHECK(ErrorOf({2, 2}, Host(3)) ==
        "--gpus-per-rank 2 needs 4 GPUs for 2 slots, and this host has 3 GPUs; give this host at "
        "most 1 slot, or a smaller --gpus-per-rank");
  HostDevices masked = Host(1);
  masked.mask = "0";
  CHECK(ErrorOf({1, 2}, masked) ==
        "--gpus-per-rank 2 needs 2 GPUs for 1 slot, and this host has 1 GPU (CUDA_VISIBLE_DEVICES "
        "is \"0\"); give a smaller --gpus-per-rank");
  HostDevices none = Host(0);
  none.no_gpus = "libnvidia-ml.so.1: gone";
  CHECK(ErrorOf({1, 1}, none) ==
        "--gpus-per-rank 1 needs 1 GPU for 1 slot, and this host has none "
        "(libnvidia-ml.so.1: gone); --gpus-per-rank 0 leaves CUDA_VISIBLE_DEVICES as it is");
}

TEST_CASE("a host without GPUs, or one whose GPUs are left alone, has cores only") {
  for (const HostPlan& plan : {Plan({2, {}}, Host(0)), Plan({2, 0}, Host(4))}) {
    CHECK(plan.slots[1].visible.empty());
    CHECK(plan.slots[1].cores == Range(4, 7));
    CHECK(FormatGpus(1, plan.slots[1]) == "-");
    CHECK(plan.note.empty());
  }
}

TEST_CASE("a slot gets no more cores than the manager gives it, where there are so many for each") {
  CHECK(Plan({2, {}, true, 3}, Host(0)).slots[1].cores == Range(4, 6));
  CHECK(Plan({2, {}, true, 4}, Host(0)).slots[1].cores == Range(4, 7));
  CHECK(Plan({2, {}, true, 5}, Host(0)).slots[1].cores == Range(4, 7));
  CHECK(Plan({9, {}, true, 1}, Host(0)).slots[1].cores == Range(0, 7));  // they share
  CHECK(Plan({2, {}, false, 3}, Host(0)).slots[1].cores.empty());
}

TEST_CASE("near cores are taken as they are asked for, and where nobody loses") {
  HostDevices devices = Host(4);
  std::swap(devices.gpus[0], devices.gpus[3]);
  HostPlan plan = Plan({4, {}}, devices);
  CHECK(plan.slots[0].cores == Cores{4, 5});
  CHECK(plan.slots[1].cores == Cores{0, 1});
  CHECK(Plan({2, {}}, Host(4)).slots[0].cores == Range(0, 3));
  CHECK(Plan({2, {}}, Host(4)).slots[1].cores == Range(4, 7));
  CHECK(Plan({2, 1}, Host(4)).slots[1].cores == Cores{2, 3});
  CHECK(Plan({2, 1, false}, Host(4)).slots[1].cores.empty());
}

}  // namespace
}  // namespace hvd
