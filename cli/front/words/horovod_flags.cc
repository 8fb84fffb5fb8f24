// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/horovod_flags.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/settings/settings.h"

namespace hvd::cli {
namespace {

using Fate = HorovodFate;

constexpr const char* kNoMpi = "no mpirun or jsrun is started, hvdd starts the ranks";
constexpr const char* kHierarchical = "HOROVOD_HIERARCHICAL_ALLREDUCE";
constexpr const char* kNoTorus = "HOROVOD_TORUS_ALLREDUCE";
constexpr const char* kNoTimes =
    "HOROVOD_LOG_HIDE_TIME";  // --prefix-output-with-timestamp has times for every line

// spellings, values, fate, words, key of the config file
constexpr std::array kFlags = {
    HorovodFlag{"-h,--help", 0, Fate::kOurs, ""},
    HorovodFlag{"-v,--version", 0, Fate::kOurs, "hvdrun's version"},
    HorovodFlag{"-np,--num-proc", 1, Fate::kOurs, "exact, also where the hosts have more slots"},
    HorovodFlag{"-cb,--check-build", 0, Fate::kOurs, ""},
    HorovodFlag{"--disable-cache", 0, Fate::kNote, "nothing is remembered from launch to launch"},
    HorovodFlag{"--start-timeout", 1, Fate::kOurs, "HOROVOD_START_TIMEOUT says the same"},
    HorovodFlag{"--network-interfaces,--network-interface", 1, Fate::kOurs,
                "each mention adds to the list"},
    HorovodFlag{"--output-filename", 1, Fate::kOurs,
                "DIR/rank.N/stdout and stderr on this host, without the prefix of each line"},
    HorovodFlag{"--verbose", 0, Fate::kOurs, ""},
    HorovodFlag{"--config-file", 1, Fate::kConfig, "YAML, with keys for some of these flags"},
    HorovodFlag{"-p,--ssh-port", 1, Fate::kOurs, ""},
    HorovodFlag{"-i,--ssh-identity-file", 1, Fate::kOurs, ""},
    HorovodFlag{"--fusion-threshold-mb", 1, Fate::kOurs, "", "params.fusion_threshold_mb"},
    HorovodFlag{"--cycle-time-ms", 1, Fate::kOurs,
                "how long a batch that nobody waits for stays open; there is no cycle",
                "params.cycle_time_ms"},
    HorovodFlag{"--cache-capacity", 1, Fate::kNote, "HOROVOD_CACHE_CAPACITY",
                "params.cache_capacity"},
    HorovodFlag{"--hierarchical-allreduce", 0, Fate::kNote, kHierarchical,
                "params.hierarchical_allreduce"},
    HorovodFlag{"--no-hierarchical-allreduce", 0, Fate::kNote, kHierarchical},
    HorovodFlag{"--hierarchical-allgather", 0, Fate::kNote, "HOROVOD_HIERARCHICAL_ALLGATHER",
                "params.hierarchical_allgather"},
    HorovodFlag{"--no-hierarchical-allgather", 0, Fate::kNote, "HOROVOD_HIERARCHICAL_ALLGATHER"},
    HorovodFlag{"--torus-allreduce", 0, Fate::kNote, kNoTorus, "params.torus_allreduce"},
    HorovodFlag{"--no-torus-allreduce", 0, Fate::kNote, kNoTorus},
    HorovodFlag{"--autotune", 0, Fate::kOurs, "", "autotune.enabled"},
    HorovodFlag{"--no-autotune", 0, Fate::kOurs, ""},
    HorovodFlag{"--autotune-log-file", 1, Fate::kOurs, "", "autotune.log_file"},
    HorovodFlag{"--autotune-warmup-samples", 1, Fate::kOurs, "", "autotune.warmup_samples"},
    HorovodFlag{"--autotune-steps-per-sample", 1, Fate::kOurs, "", "autotune.steps_per_sample"},
    HorovodFlag{"--autotune-bayes-opt-max-samples", 1, Fate::kOurs, "6 at least",
                "autotune.bayes_opt_max_samples"},
    HorovodFlag{"--autotune-gaussian-process-noise", 1, Fate::kNote,
                "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "autotune.gaussian_process_noise"},
    HorovodFlag{"--min-np,--min-num-proc", 1, Fate::kOurs,
                "-np may be left out; one host is enough"},
    HorovodFlag{"--max-np,--max-num-proc", 1, Fate::kOurs, "makes a job elastic by itself, too"},
    HorovodFlag{"--slots-per-host,--slots", 1, Fate::kOurs, "also for -H and --hostfile"},
    HorovodFlag{"--elastic-timeout", 1, Fate::kOurs, "HOROVOD_ELASTIC_TIMEOUT says the same"},
    HorovodFlag{"--reset-limit", 1, Fate::kOurs, ""},
    HorovodFlag{"--blacklist-cooldown-range", 2, Fate::kOurs,
                "without it a host is left alone for 10 s, then twice as long, at most 600 s"},
    HorovodFlag{"--host-discovery-script", 1, Fate::kOurs,
                "may print what a hostfile may have; see --discovery-interval"},
    HorovodFlag{"--timeline-filename", 1, Fate::kOurs, "all ranks in one file",
                "timeline.filename"},
    HorovodFlag{"--timeline-mark-cycles", 0, Fate::kNote, "HOROVOD_TIMELINE_MARK_CYCLES",
                "timeline.mark_cycles"},
    HorovodFlag{"--no-timeline-mark-cycles", 0, Fate::kNote, "HOROVOD_TIMELINE_MARK_CYCLES"},
    HorovodFlag{"--stall-check", 0, Fate::kOurs, "", "stall_check.enabled"},
    HorovodFlag{"--no-stall-check", 0, Fate::kOurs, ""},
    HorovodFlag{"--stall-check-warning-time-seconds", 1, Fate::kOurs, "",
                "stall_check.warning_time_seconds"},
    HorovodFlag{"--stall-check-shutdown-time-seconds", 1, Fate::kOurs, "exit code 124",
                "stall_check.shutdown_time_seconds"},
    HorovodFlag{"--mpi-threads-disable", 0, Fate::kNote, "HOROVOD_MPI_THREADS_DISABLE",
                "library_options.mpi_threads_disable"},
    HorovodFlag{"--no-mpi-threads-disable", 0, Fate::kNote, "HOROVOD_MPI_THREADS_DISABLE"},
    HorovodFlag{"--mpi-args", 1, Fate::kNote, kNoMpi},
    HorovodFlag{"--tcp", 0, Fate::kSetting, "HVD_TRANSPORT=tcp"},
    HorovodFlag{"--binding-args", 1, Fate::kNote,
                "hvdd gives each rank cores of its own; --bind none leaves them free"},
    HorovodFlag{"--num-nccl-streams", 1, Fate::kNote, "HOROVOD_NUM_NCCL_STREAMS",
                "library_options.num_nccl_streams"},
    HorovodFlag{"--thread-affinity", 1, Fate::kNote, "HOROVOD_THREAD_AFFINITY",
                "library_options.thread_affinity"},
    HorovodFlag{"--gloo-timeout-seconds", 1, Fate::kNote, "HOROVOD_GLOO_TIMEOUT_SECONDS",
                "library_options.gloo_timeout_seconds"},
    HorovodFlag{"--log-level", 1, Fate::kOurs, "", "logging.level"},
    HorovodFlag{"--log-with-timestamp,--no-log-hide-timestamp", 0, Fate::kNote, kNoTimes,
                "logging.with_timestamp"},
    HorovodFlag{"--log-without-timestamp,--log-hide-timestamp", 0, Fate::kNote, kNoTimes,
                "logging.hide_timestamp"},
    HorovodFlag{"-prefix-timestamp,--prefix-output-with-timestamp", 0, Fate::kOurs, ""},
    HorovodFlag{"-H,--hosts", 1, Fate::kOurs, ""},
    HorovodFlag{"-hostfile,--hostfile", 1, Fate::kOurs, ""},
    HorovodFlag{"--gloo", 0, Fate::kNote, "HOROVOD_CONTROLLER", "controller"},
    HorovodFlag{"--mpi", 0, Fate::kNote, "HOROVOD_CONTROLLER"},
    HorovodFlag{"--jsrun", 0, Fate::kNote, kNoMpi},
};

std::vector<std::string> Spellings(const HorovodFlag& flag) {
  return absl::StrSplit(flag.names, ',');
}

std::string HereOf(const HorovodFlag& flag) {
  const std::string words = WordsOf(flag);
  switch (flag.fate) {
    case Fate::kOurs:
      return absl::StrCat("works", words.empty() ? "" : ": ", words);
    case Fate::kConfig:
      return absl::StrCat("read: ", words);
    case Fate::kSetting:
      return absl::StrCat("sets ", words);
    case Fate::kNote:
      return absl::StrCat("taken, and told: ", words);
  }
  return "";
}

}  // namespace

absl::Span<const HorovodFlag> HorovodFlags() { return kFlags; }

const HorovodFlag* FindHorovodFlag(absl::string_view name) {
  for (const HorovodFlag& flag : kFlags) {
    for (const absl::string_view spelling : absl::StrSplit(flag.names, ',')) {
      if (spelling == name) return &flag;
    }
  }
  return nullptr;
}

const HorovodFlag* FindHorovodKey(absl::string_view key) {
  const auto* found = std::find_if(kFlags.begin(), kFlags.end(), [key](const HorovodFlag& flag) {
    return flag.key != nullptr && key == flag.key;
  });
  return found == kFlags.end() ? nullptr : found;
}

const HorovodFlag* OppositeOf(const HorovodFlag& flag) {
  for (const absl::string_view name : absl::StrSplit(flag.names, ',')) {
    absl::string_view positive = name;
    const std::string opposite = absl::ConsumePrefix(&positive, "--no-")
                                     ? absl::StrCat("--", positive)
                                     : absl::StrCat("--no-", name.substr(2));
    const HorovodFlag* found = FindHorovodFlag(opposite);
    if (found != nullptr && found != &flag) return found;
  }
  return nullptr;
}

std::string CanonicalName(const HorovodFlag& flag) {
  for (const std::string& spelling : Spellings(flag)) {
    if (absl::StartsWith(spelling, "--")) return spelling;
  }
  return Spellings(flag).front();
}

std::string WordsOf(const HorovodFlag& flag) {
  for (const ForeignSetting& setting : ForeignSettings()) {
    if (flag.fate == Fate::kNote && absl::string_view(setting.name) == flag.words)
      return setting.why;
  }
  return flag.words;
}

std::vector<OptionSpelling> HorovodSpellings() {
  std::vector<OptionSpelling> spellings;
  for (const HorovodFlag& flag : kFlags) {
    if (flag.fate == Fate::kOurs) continue;
    for (const std::string& spelling : Spellings(flag)) {
      spellings.push_back({spelling, CanonicalName(flag), flag.values > 0});
    }
  }
  return spellings;
}

std::string HorovodHelp() {
  std::string text = "\nhorovodrun's own flags:\n";
  std::string keys;
  for (const HorovodFlag& flag : kFlags) {
    if (flag.key != nullptr) absl::StrAppend(&keys, "  ", flag.key, "\n");
    if (flag.fate == Fate::kOurs) continue;
    absl::StrAppend(&text, "  ", absl::StrJoin(Spellings(flag), ", "), "\n      ", HereOf(flag),
                    "\n");
  }
  return absl::StrCat(text, "\nKeys of --config-file (YAML: each section with its keys):\n", keys);
}

std::string HorovodMarkdown() {
  std::string text = "| horovodrun | hvdrun | config file |\n|---|---|---|\n";
  for (const HorovodFlag& flag : kFlags) {
    absl::StrAppend(&text, "| `", absl::StrJoin(Spellings(flag), "`, `"), "` | ", HereOf(flag),
                    " | ", flag.key == nullptr ? "" : absl::StrCat("`", flag.key, "`"), " |\n");
  }
  return text;
}

}  // namespace hvd::cli
