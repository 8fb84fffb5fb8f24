// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/setting_options.h"

#include <array>

namespace hvd::cli {
namespace {

using Id = SettingId;

constexpr std::array kOptions = {
    SettingOption{"--fusion-threshold-mb", "MB", Id::kFusionThreshold, "M",
                  "reduce small tensors together up to this size; 0: each alone", "64"},
    SettingOption{"--cycle-time-ms", "MS", Id::kBatchWait, "ms",
                  "how long a batch that nobody waits for stays open (there is no cycle)", "1"},
    SettingOption{"--network-interfaces,--network-interface", "LIST", Id::kNetDevices, "",
                  "for tensors between hosts: eth0,eth1"},
    SettingOption{"--max-pending", "COUNT", Id::kMaxPending, "",
                  "tensors that may be pending at once on a host (1048576)", "4194304"},
    SettingOption{"--timeline-filename", "FILE", Id::kTimeline, "",
                  "write what every rank did when; DYNAMIC: when the program says so"},
    SettingOption{"--stall-check", nullptr, Id::kStallCheckDisable, "0",
                  "warn of tensors that some ranks never submit (the default)"},
    SettingOption{"--no-stall-check", nullptr, Id::kStallCheckDisable, "1", "do not"},
    SettingOption{"--stall-check-warning-time-seconds", "TIME", Id::kStallWarn, "",
                  "after this time (60)", "60"},
    SettingOption{"--stall-check-shutdown-time-seconds", "TIME", Id::kStallAbort, "",
                  "and end the job, exit code 124, after this time; 0: never (0)", "600"},
    SettingOption{"--autotune", nullptr, Id::kAutotune, "1",
                  "search for better settings while the program runs"},
    SettingOption{"--no-autotune", nullptr, Id::kAutotune, "0", "do not (the default)"},
    SettingOption{"--autotune-log-file", "FILE", Id::kAutotuneLog, "",
                  "every sample of --autotune, as CSV"},
    SettingOption{"--autotune-file", "FILE", Id::kAutotuneFile, "",
                  "the result of --autotune: used if it is there, else written"},
    SettingOption{"--autotune-warmup-samples", "COUNT", Id::kAutotuneWarmup, "",
                  "samples thrown away before the search (3)", "3"},
    SettingOption{"--autotune-steps-per-sample", "COUNT", Id::kAutotuneSteps, "",
                  "batches of one sample (10)", "10"},
    SettingOption{"--autotune-max-samples,--autotune-bayes-opt-max-samples", "COUNT",
                  Id::kAutotuneSamples, "", "samples after which the search ends (40)", "40"},
    SettingOption{"--log-level", "LEVEL", Id::kLogLevel, "",
                  "trace, debug, info, warning, error or fatal: what libhvd says (warning)",
                  "info"},
};

}  // namespace

absl::Span<const SettingOption> SettingOptions() { return kOptions; }

}  // namespace hvd::cli
