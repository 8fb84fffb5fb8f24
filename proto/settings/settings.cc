// SPDX-License-Identifier: Apache-2.0
#include "proto/settings/settings.h"

#include <array>

namespace hvd {
namespace {

constexpr double kKiB = 1024;
constexpr double kMiB = kKiB * kKiB;
constexpr double kGiB = kKiB * kMiB;
constexpr double kYear = 366.0 * 24 * 3600;

using Id = SettingId;
using Kind = SettingKind;

constexpr std::array<absl::string_view, 6> kLogLevels = {"trace",   "debug", "info",
                                                         "warning", "error", "fatal"};
constexpr std::array<absl::string_view, 3> kTransports = {"auto", "tcp", "ucx"};
constexpr std::array<absl::string_view, 3> kGpuWays = {"auto", "nccl", "host"};

// id, name, Horovod's name, kind, default, help, least, most, units in one of the alias's, choices
constexpr std::array kSettings = {
    Setting{Id::kFusionThreshold, "HVD_FUSION_THRESHOLD", "HOROVOD_FUSION_THRESHOLD", Kind::kBytes,
            "64M", "tensors of one batch are reduced together up to this size; 0: each alone", 0,
            4 * kGiB},
    Setting{Id::kDisableGroupFusion, "HVD_DISABLE_GROUP_FUSION", "HOROVOD_DISABLE_GROUP_FUSION",
            Kind::kFlag, "0", "a group's tensors are fused with one another only"},
    Setting{Id::kBatchWait, "HVD_BATCH_WAIT_US", "HOROVOD_CYCLE_TIME", Kind::kMicroseconds, "50",
            "how long a batch that nobody waits for stays open for more tensors", 0, 1e6, 1000},
    Setting{Id::kBucketBytes, "HVD_BUCKET_BYTES", nullptr, Kind::kBytes, "25M",
            "gradients of a bucket that travel together", 1, 4 * kGiB},
    Setting{Id::kOneShotBytes, "HVD_ONE_SHOT_BYTES", nullptr, Kind::kBytes, nullptr,
            "up to this size every rank of a host sums everything itself", 0, 128 * kKiB},
    Setting{Id::kPieceBytes, "HVD_PIECE_BYTES", nullptr, Kind::kBytes, nullptr,
            "pieces in which user memory passes through a host's shared memory", 4 * kKiB,
            64 * kMiB},
    Setting{Id::kPeerReadBytes, "HVD_PEER_READ_BYTES", nullptr, Kind::kBytes, "4M",
            "from this size ranks of a host read one another's user memory if that proves faster; "
            "0: never",
            0, 4 * kGiB},
    Setting{Id::kRailsBytes, "HVD_RAILS_BYTES", nullptr, Kind::kBytes, nullptr,
            "from this size all ranks of a host talk to the other hosts, not just one", 0,
            4 * kGiB},
    Setting{Id::kRingBytes, "HVD_RING_BYTES", nullptr, Kind::kBytes, nullptr,
            "from this size hosts reduce along a ring", 0, 4 * kGiB},
    Setting{Id::kSegmentBytes, "HVD_SEGMENT_BYTES", nullptr, Kind::kBytes, nullptr,
            "bytes of one send between hosts; up to four times as many of large tensors", 4 * kKiB,
            64 * kMiB},
    Setting{Id::kDeterministic, "HVD_DETERMINISTIC", nullptr, Kind::kFlag, "0",
            "sums between hosts in host order, the same bits whatever was fused"},
    Setting{Id::kDynamicProcessSets, "HVD_DYNAMIC_PROCESS_SETS", "HOROVOD_DYNAMIC_PROCESS_SETS",
            Kind::kFlag, "1", "process sets may be added and removed after hvd_init"},
    Setting{Id::kMaxPending, "HVD_MAX_PENDING", nullptr, Kind::kCount, "1048576",
            "tensors of a process set that may be pending at once on a host, of all its ranks "
            "together",
            1, 16 * kMiB},
    Setting{Id::kStallCheckDisable, "HVD_STALL_CHECK_DISABLE", "HOROVOD_STALL_CHECK_DISABLE",
            Kind::kFlag, "0", "no warning about tensors that some ranks never submit"},
    Setting{Id::kStallWarn, "HVD_STALL_CHECK_TIME_SECONDS", "HOROVOD_STALL_CHECK_TIME_SECONDS",
            Kind::kSeconds, "60", "warn of a tensor that waits this long for some ranks", 0.1,
            kYear},
    Setting{Id::kStallAbort, "HVD_STALL_SHUTDOWN_TIME_SECONDS",
            "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", Kind::kSeconds, "0",
            "end the epoch when a tensor has waited this long; 0: never", 0, kYear},
    Setting{Id::kGrace, "HVD_GRACE", nullptr, Kind::kSeconds, "5",
            "hvdrun: how long ranks may take to end after TERM, for a last checkpoint; then KILL",
            0, kYear},
    Setting{Id::kTimeline, "HVD_TIMELINE", "HOROVOD_TIMELINE", Kind::kText, "",
            "file for what every rank did when, or DYNAMIC: started by the program"},
    Setting{Id::kAutotune, "HVD_AUTOTUNE", "HOROVOD_AUTOTUNE", Kind::kFlag, "0",
            "search for better settings while the program runs"},
    Setting{Id::kAutotuneLog, "HVD_AUTOTUNE_LOG", "HOROVOD_AUTOTUNE_LOG", Kind::kText, "",
            "file for every sample of the search, as CSV"},
    Setting{Id::kAutotuneFile, "HVD_AUTOTUNE_FILE", nullptr, Kind::kText, "",
            "file of the search's result: read if it is there, written when the search is done"},
    Setting{Id::kAutotuneWarmup, "HVD_AUTOTUNE_WARMUP_SAMPLES", "HOROVOD_AUTOTUNE_WARMUP_SAMPLES",
            Kind::kCount, "3", "samples thrown away before the search", 0, 1000},
    Setting{Id::kAutotuneSteps, "HVD_AUTOTUNE_STEPS_PER_SAMPLE",
            "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", Kind::kCount, "10", "batches of one sample", 1,
            1e6},
    Setting{Id::kAutotuneSamples, "HVD_AUTOTUNE_MAX_SAMPLES",
            "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", Kind::kCount, "40",
            "samples after which the search ends at the latest", 6, 10000},
    Setting{Id::kLogLevel, "HVD_LOG_LEVEL", "HOROVOD_LOG_LEVEL", Kind::kChoice, "warning",
            "what the library says on stderr", 0, 0, 1, kLogLevels},
    Setting{Id::kNetDevices, "HVD_NET_DEVICES", "HOROVOD_GLOO_IFACE", Kind::kText, "",
            "network interfaces between hosts, separated by commas"},
    Setting{Id::kTransport, "HVD_TRANSPORT", nullptr, Kind::kChoice, "auto",
            "what carries tensors between hosts: tcp, ucx, or auto: ucx where an RDMA port is "
            "active and UCX installed, else tcp",
            0, 0, 1, kTransports},
    Setting{Id::kGpuOperations, "HVD_GPU_OPERATIONS", nullptr, Kind::kChoice, "auto",
            "how tensors on GPUs are exchanged: nccl, host (by way of the host's memory), or auto: "
            "nccl where all ranks have it and a GPU each, else host",
            0, 0, 1, kGpuWays},
    Setting{Id::kNcclLibrary, "HVD_NCCL_LIBRARY", nullptr, Kind::kText, "",
            "path of the libnccl that is used, and no other"},
};

constexpr const char* kNoCache = "known tensors are remembered always, there is no cache to size";
constexpr const char* kAlwaysHierarchical =
    "the hierarchy of hosts and ranks is always used where there is one";
constexpr const char* kNoController = "there is one engine, no choice of controllers";
constexpr const char* kOtherSearch = "the search needs no model of the noise";
constexpr const char* kNoGpu = "hvd chooses streams and completion itself";
constexpr const char* kNoServer = "ranks meet through hvdd, there is no rendezvous server";

constexpr std::array kForeign = {
    ForeignSetting{"HOROVOD_CACHE_CAPACITY", kNoCache},
    ForeignSetting{"HOROVOD_HIERARCHICAL_ALLREDUCE", kAlwaysHierarchical},
    ForeignSetting{"HOROVOD_HIERARCHICAL_ALLGATHER", kAlwaysHierarchical},
    ForeignSetting{"HOROVOD_TORUS_ALLREDUCE", kAlwaysHierarchical},
    ForeignSetting{"HOROVOD_TIMELINE_MARK_CYCLES", "there are no cycles to mark"},
    ForeignSetting{"HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", kOtherSearch},
    ForeignSetting{"HOROVOD_CONTROLLER", kNoController},
    ForeignSetting{"HOROVOD_CPU_OPERATIONS", kNoController},
    ForeignSetting{"HOROVOD_MPI_THREADS_DISABLE", kNoController},
    ForeignSetting{"HOROVOD_GLOO_TIMEOUT_SECONDS",
                   "lost peers are found by hvdd, not by a timeout"},
    ForeignSetting{"HOROVOD_THREAD_AFFINITY", "hvdd gives each rank cores of its own"},
    ForeignSetting{"HOROVOD_LOG_HIDE_TIME", "the library's lines carry no time"},
    ForeignSetting{"HOROVOD_BATCH_D2D_MEMCOPIES", kNoGpu},
    ForeignSetting{"HOROVOD_NUM_NCCL_STREAMS", kNoGpu},
    ForeignSetting{"HOROVOD_ENABLE_ASYNC_COMPLETION", kNoGpu},
    ForeignSetting{"HOROVOD_ENABLE_XLA_OPS", "there are no XLA operations"},
    ForeignSetting{"HOROVOD_DISABLE_NVTX_RANGES", "no NVTX ranges are made"},
    ForeignSetting{"HOROVOD_CCL_CACHE", "oneCCL is not used"},
    ForeignSetting{"HOROVOD_ELASTIC", "hvdrun says which jobs are elastic (--min-np)"},
    ForeignSetting{"HOROVOD_GLOO_RENDEZVOUS_ADDR", kNoServer},
    ForeignSetting{"HOROVOD_GLOO_RENDEZVOUS_PORT", kNoServer},
    ForeignSetting{"HOROVOD_ADASUM_MPI_CHUNK_SIZE", "messages are cut by HVD_SEGMENT_BYTES"},
};

constexpr std::array<absl::string_view, 13> kOthers = {
    "HVD_LINK",        "HVD_JOB_MARK",   "HVD_RANK",       "HVD_SIZE",     "HVD_LOCAL_RANK",
    "HVD_LOCAL_SIZE",  "HVD_CROSS_RANK", "HVD_CROSS_SIZE", "HVD_HOSTNAME", "HVD_HOSTFILE",
    "HVD_CONTAINMENT", "HVD_HOST_CORES", "HVD_STANDALONE",
};

}  // namespace

// Without a default, so that a new setting is thought of here.
SettingScope ScopeOf(SettingId id) {
  switch (id) {
    case Id::kFusionThreshold:
    case Id::kDisableGroupFusion:
    case Id::kBucketBytes:
    case Id::kOneShotBytes:
    case Id::kPieceBytes:
    case Id::kPeerReadBytes:
    case Id::kRailsBytes:
    case Id::kRingBytes:
    case Id::kSegmentBytes:
    case Id::kDeterministic:
    case Id::kDynamicProcessSets:
    case Id::kMaxPending:
    case Id::kAutotune:
    case Id::kTransport:
    case Id::kGpuOperations:
    case Id::kAutotuneSteps:  // all count the batches of a sample
      return SettingScope::kJob;
    case Id::kBatchWait:  // a batch is closed by whoever opened it
    case Id::kLogLevel:
    case Id::kNetDevices:
    case Id::kNcclLibrary:  // NCCL itself knows whether two go together
      return SettingScope::kRank;
    case Id::kTimeline:
    case Id::kAutotuneLog:
    case Id::kAutotuneFile:
    case Id::kAutotuneWarmup:
    case Id::kAutotuneSamples:
      return SettingScope::kFirst;
    case Id::kStallCheckDisable:
    case Id::kStallWarn:
    case Id::kStallAbort:
    case Id::kGrace:
      return SettingScope::kLauncher;
  }
  return SettingScope::kJob;
}

absl::Span<const Setting> Settings() { return kSettings; }
absl::Span<const ForeignSetting> ForeignSettings() { return kForeign; }
absl::Span<const absl::string_view> OtherVariables() { return kOthers; }

}  // namespace hvd
