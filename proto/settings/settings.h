// SPDX-License-Identifier: Apache-2.0
// The settings that workers read from their environment: names, Horovod's names for the same, what
// a value may be. hvdrun checks and shows them, libhvd obeys them; both from this one table.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hvd {

// In the order of Settings().
enum class SettingId {
  kFusionThreshold,
  kDisableGroupFusion,
  kBatchWait,
  kBucketBytes,
  kOneShotBytes,
  kPieceBytes,
  kPeerReadBytes,
  kRailsBytes,
  kRingBytes,
  kSegmentBytes,
  kDeterministic,
  kDynamicProcessSets,
  kMaxPending,
  kStallCheckDisable,
  kStallWarn,
  kStallAbort,
  kGrace,
  kTimeline,
  kAutotune,
  kAutotuneLog,
  kAutotuneFile,
  kAutotuneWarmup,
  kAutotuneSteps,
  kAutotuneSamples,
  kLogLevel,
  kNetDevices,
  kTransport,
  kGpuOperations,
  kNcclLibrary,
};

enum class SettingKind {
  kBytes,         // 65536, 64K, 1.5M, 2GiB
  kSeconds,       // 60, 60s, 500ms, 2m, 1h
  kMicroseconds,  // 50, 50us, 1ms
  kCount,         // a whole number
  kFlag,          // 1 or 0, true or false, yes or no, on or off
  kChoice,        // one of `choices`; its value is the index
  kText,
};

struct Setting {
  SettingId id;
  const char* name;   // "HVD_…"
  const char* alias;  // "HOROVOD_…", or nothing
  SettingKind kind;
  const char* fallback;  // what counts when it is not set, as one would write it; nothing: measured
  const char* help;      // one line
  double least = 0;      // of bytes, seconds, microseconds, counts
  double most = 0;
  double alias_scale = 1;  // units of this setting in one of the alias's
  absl::Span<const absl::string_view> choices = {};
};

absl::Span<const Setting> Settings();

// The owners of a setting, whose value counts.
enum class SettingScope {
  kJob,    // all ranks' alike: results, or who waits for whom, depend on it. Compared at hvd_init
  kRank,   // each rank's own
  kFirst,  // rank 0's counts
  kLauncher,  // hvdrun's, which tells whoever needs it
};
SettingScope ScopeOf(SettingId id);

// A variable of Horovod that has nothing to set here, and why.
struct ForeignSetting {
  const char* name;
  const char* why;
};
absl::Span<const ForeignSetting> ForeignSettings();

// Other variables whose names begin with HVD_; launcher and daemon give or read them.
absl::Span<const absl::string_view> OtherVariables();

}  // namespace hvd
