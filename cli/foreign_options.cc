#include "cli/foreign_options.h"

#include <algorithm>
#include <array>

namespace hvd {
namespace {

constexpr std::array kHorovodOptions = {
    "--disable-cache",
    "--config-file",
    "--cache-capacity",
    "--hierarchical-allreduce",
    "--no-hierarchical-allreduce",
    "--hierarchical-allgather",
    "--no-hierarchical-allgather",
    "--torus-allreduce",
    "--no-torus-allreduce",
    "--autotune-gaussian-process-noise",
    "--min-np",
    "--min-num-proc",
    "--max-np",
    "--max-num-proc",
    "--slots-per-host",
    "--slots",
    "--elastic-timeout",
    "--reset-limit",
    "--blacklist-cooldown-range",
    "--timeline-mark-cycles",
    "--no-timeline-mark-cycles",
    "--mpi-threads-disable",
    "--no-mpi-threads-disable",
    "--mpi-args",
    "--tcp",
    "--binding-args",
    "--num-nccl-streams",
    "--thread-affinity",
    "--gloo-timeout-seconds",
    "--log-with-timestamp",
    "--log-without-timestamp",
    "--log-hide-timestamp",
    "--no-log-hide-timestamp",
    "--host-discovery-script",
    "--gloo",
    "--mpi",
    "--jsrun",
};

struct Advice {
  const char* name;  // without its dashes: Open MPI takes one or two
  const char* words;
};

constexpr const char* kPerHost = "how many run on a host is said by slots: -H host1:2,host2:2";
constexpr const char* kDirectory = "the ranks run in the directory that hvdrun is started in";

constexpr Advice kAdvice[] = {
    {"allow-run-as-root", "root needs no permission here: leave it out"},
    {"oversubscribe", "a host runs as many ranks as it is given slots: -H host1:8"},
    {"map-by", "ranks fill the hosts in the order that -H or the hostfile has"},
    {"tag-output", "each line names its rank already: leave it out"},
    {"mca", "settings of the workers are HVD_ variables; hvdrun --help has their options"},
    {"wdir", kDirectory},
    {"wd", kDirectory},
    {"ppn", kPerHost},
    {"npernode", kPerHost},
    {"nproc_per_node", kPerHost},
    {"nproc-per-node", kPerHost},
};

}  // namespace

bool IsHorovodOption(const std::string& name) {
  return std::find(kHorovodOptions.begin(), kHorovodOptions.end(), name) != kHorovodOptions.end();
}

absl::string_view AdviceFor(absl::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  for (const Advice& advice : kAdvice) {
    if (name == advice.name) return advice.words;
  }
  return "";
}

}  // namespace hvd
