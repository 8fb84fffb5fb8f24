// SPDX-License-Identifier: Apache-2.0
#include "placement/host_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/source_error.h"
#include "placement/core_plan.h"

namespace hvd {
namespace {

using Gpus = std::vector<Gpu>;

bool AnyMig(const Gpus& gpus) { return std::any_of(gpus.begin(), gpus.end(), IsMigInstance); }

std::string Counted(size_t count, const Gpus& gpus) {
  const bool mig = !gpus.empty() && std::all_of(gpus.begin(), gpus.end(), IsMigInstance);
  return absl::StrCat(count, mig ? " MIG instance" : " GPU", count == 1 ? "" : "s");
}

std::string CountedSlots(size_t count) {
  return absl::StrCat(count, count == 1 ? " slot" : " slots");
}

std::string NextStep(int per_rank, size_t here) {
  if (here == 0) return "--gpus-per-rank 0 leaves CUDA_VISIBLE_DEVICES as it is";
  const size_t fit = here / per_rank;
  if (fit == 0) return "give a smaller --gpus-per-rank";
  return absl::StrCat("give this host at most ", CountedSlots(fit),
                      per_rank > 1 ? ", or a smaller --gpus-per-rank" : "");
}

absl::Status TooFew(const HostWish& wish, const HostDevices& devices) {
  const int per_rank = *wish.gpus_per_rank;
  const size_t here = devices.gpus.size();
  std::string why;
  if (devices.mask.has_value()) {
    why = absl::StrCat(" (CUDA_VISIBLE_DEVICES is ", Quoted(*devices.mask), ")");
  }
  if (!devices.no_gpus.empty()) why = absl::StrCat(" (", Printable(devices.no_gpus), ")");
  return absl::FailedPreconditionError(absl::StrCat(
      "--gpus-per-rank ", per_rank, " needs ", Counted(size_t{1} * wish.slots * per_rank, {}),
      " for ", CountedSlots(wish.slots), ", and this host has ",
      here == 0 ? "none" : Counted(here, devices.gpus), why, "; ", NextStep(per_rank, here)));
}

void Show(const Gpus& gpus, SlotShare* share) {
  for (const Gpu& gpu : gpus) share->visible.push_back(gpu.uuid);
}

absl::Status GiveOwn(const HostWish& wish, const HostDevices& devices, HostPlan* plan) {
  const size_t per_rank = *wish.gpus_per_rank;
  if (devices.gpus.size() < per_rank * wish.slots) return TooFew(wish, devices);
  for (size_t slot = 0; slot < plan->slots.size(); ++slot) {
    const auto first = devices.gpus.begin() + slot * per_rank;
    SlotShare& share = plan->slots[slot];
    share.gpus = {first, first + per_rank};
    Show(share.gpus, &share);
    if (per_rank == 1 || !AnyMig(share.gpus)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("--gpus-per-rank ", per_rank, ": this host has MIG instances (",
                     ShortUuid(share.gpus.front().uuid),
                     ", …), and CUDA shows a process one of them only; give --gpus-per-rank 1"));
  }
  return absl::OkStatus();
}

void NoteSharing(const HostDevices& devices, HostPlan* plan) {
  const size_t here = devices.gpus.size();
  plan->note = absl::StrCat(Counted(here, devices.gpus), " for ", CountedSlots(plan->slots.size()),
                            ": ranks share ", here == 1 ? "it" : "them",
                            " (--gpus-per-rank 1 makes that an error, 0 leaves "
                            "CUDA_VISIBLE_DEVICES as it is)");
}

// As many as there are, without a wish.
void GiveWhatIsThere(const HostDevices& devices, HostPlan* plan) {
  const Gpus& gpus = devices.gpus;
  if (gpus.empty()) return;
  const bool shared = gpus.size() < plan->slots.size();
  for (size_t slot = 0; slot < plan->slots.size(); ++slot) {
    SlotShare& share = plan->slots[slot];
    share.shared = shared;
    share.gpus = {gpus[slot % gpus.size()]};
    const bool sees_all = !AnyMig(gpus);
    Show(sees_all ? gpus : share.gpus, &share);
    if (shared && sees_all) share.gpus = gpus;
  }
  if (shared) NoteSharing(devices, plan);
}

std::vector<int> NearCores(const SlotShare& share) {
  std::set<int> near;
  for (const Gpu& gpu : share.gpus) {
    if (gpu.near_cores.empty()) return {};
    near.insert(gpu.near_cores.begin(), gpu.near_cores.end());
  }
  return {near.begin(), near.end()};
}

void GiveCores(const HostWish& wish, const HostDevices& devices, HostPlan* plan) {
  CoreWish cores = {devices.cores, {}, wish.gpus_per_rank.has_value()};
  for (const SlotShare& share : plan->slots) cores.near.push_back(NearCores(share));
  std::vector<std::vector<int>> shares = PlanCores(cores);
  for (size_t slot = 0; slot < shares.size(); ++slot) {
    plan->slots[slot].cores = std::move(shares[slot]);
  }
  // Where there are fewer than that for all, they share, and nobody has a share to cut.
  const size_t most = wish.most_cores;
  if (most == 0 || most * wish.slots > devices.cores.size()) return;
  for (SlotShare& share : plan->slots) share.cores.resize(std::min(share.cores.size(), most));
}

}  // namespace

absl::StatusOr<HostPlan> PlanHost(const HostWish& wish, const HostDevices& devices) {
  HostPlan plan;
  plan.slots.resize(wish.slots);
  if (!wish.gpus_per_rank.has_value()) {
    GiveWhatIsThere(devices, &plan);
  } else if (*wish.gpus_per_rank > 0) {
    if (absl::Status given = GiveOwn(wish, devices, &plan); !given.ok()) return given;
  }
  if (wish.binds_cores) GiveCores(wish, devices, &plan);
  return plan;
}

std::string FormatGpus(int slot, const SlotShare& share) {
  if (share.gpus.empty()) return "-";
  std::string text;
  for (size_t i = 0; i < share.gpus.size(); ++i) {
    const Gpu& gpu = share.gpus[i];
    absl::StrAppend(&text, i > 0 ? "," : "", Printable(ShortUuid(gpu.uuid)));
    const bool last = i + 1 == share.gpus.size();
    if (last || share.gpus[i + 1].name != gpu.name)
      absl::StrAppend(&text, " ", Printable(gpu.name));
  }
  if (share.shared) return text + " (shared)";
  if (share.visible.size() == share.gpus.size()) return text;
  return absl::StrCat(text, " (index ", slot, " of ", share.visible.size(), ")");
}

}  // namespace hvd
