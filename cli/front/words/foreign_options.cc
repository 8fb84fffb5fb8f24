// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/foreign_options.h"

#include <algorithm>

namespace hvd::cli {
namespace {

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

absl::string_view AdviceFor(absl::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  for (const Advice& advice : kAdvice) {
    if (name == advice.name) return advice.words;
  }
  return "";
}

}  // namespace hvd::cli
