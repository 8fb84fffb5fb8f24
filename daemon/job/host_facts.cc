// SPDX-License-Identifier: Apache-2.0
#include "daemon/job/host_facts.h"

#include <sched.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "placement/nvml.h"

namespace hvd::daemon {

HostFacts ReadHostFacts(bool with_gpus) {
  HostFacts facts;
  for (char** entry = environ; *entry != nullptr; ++entry) facts.environment.push_back(*entry);
  HostDevices& devices = facts.devices;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &cores)) devices.cores.push_back(core);
    }
  }
  devices.mask = InheritedMask(facts.environment);
  // Whichever variable it came from, this is the one that CUDA knows.
  if (devices.mask.has_value()) {
    facts.environment.push_back(absl::StrCat("CUDA_VISIBLE_DEVICES=", *devices.mask));
  }
  if (!with_gpus) return facts;
  CardSearch search = FindCards();
  devices.gpus = VisibleGpus(search.cards, devices.mask);
  devices.no_gpus = std::move(search.problem);
  return facts;
}

}  // namespace hvd::daemon
