// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/tuning/config.h"

#include <catch2/catch.hpp>

namespace hvd::rt {
namespace {

using Catch::Matchers::Contains;

EngineConfig Make(const std::vector<std::string>& environment) {
  const auto config = MakeConfig(environment);
  INFO(config.status().message());
  REQUIRE(config.ok());
  return *config;
}

TEST_CASE("the table's defaults are the config's") {
  const EngineConfig table = Make({}), own;
  CHECK(table.fusion_threshold == own.fusion_threshold);
  CHECK(table.disable_group_fusion == own.disable_group_fusion);
  CHECK(table.batch_wait_us == own.batch_wait_us);
  CHECK(table.bucket_bytes == own.bucket_bytes);
  CHECK(table.dynamic_process_sets == own.dynamic_process_sets);
  CHECK(table.timeline == own.timeline);
  CHECK(table.log_level == own.log_level);
  CHECK(table.autotune == own.autotune);
  CHECK(table.autotune_log == own.autotune_log);
  CHECK(table.autotune_file == own.autotune_file);
  CHECK(table.autotune_warmup == own.autotune_warmup);
  CHECK(table.autotune_steps == own.autotune_steps);
  CHECK(table.autotune_samples == own.autotune_samples);
  CHECK(table.net_devices.empty());

  const HierarchicalThresholds &set = table.thresholds, &measured = own.thresholds;
  CHECK(set.host.one_shot_bytes == measured.host.one_shot_bytes);
  CHECK(set.host.staged_piece_bytes == measured.host.staged_piece_bytes);
  CHECK(set.host.peer_reads.least_bytes == measured.host.peer_reads.least_bytes);
  CHECK(set.rails_bytes == measured.rails_bytes);
  CHECK(set.message.ring_bytes == measured.message.ring_bytes);
  CHECK(set.message.segment_bytes == measured.message.segment_bytes);
  CHECK(set.message.deterministic == measured.message.deterministic);
}

TEST_CASE("each variable reaches its field") {
  const EngineConfig config = Make({"HVD_FUSION_THRESHOLD=32M",
                                    "HOROVOD_DISABLE_GROUP_FUSION=1",
                                    "HOROVOD_CYCLE_TIME=2",
                                    "HVD_ONE_SHOT_BYTES=4K",
                                    "HVD_PIECE_BYTES=1M",
                                    "HVD_PEER_READ_BYTES=7M",
                                    "HVD_RAILS_BYTES=2M",
                                    "HVD_SEGMENT_BYTES=3M",
                                    "HVD_RING_BYTES=5M",
                                    "HVD_DETERMINISTIC=yes",
                                    "HVD_DYNAMIC_PROCESS_SETS=0",
                                    "HVD_MAX_PENDING=70000",
                                    "HVD_TIMELINE=DYNAMIC",
                                    "HVD_LOG_LEVEL=debug",
                                    "HVD_AUTOTUNE=1",
                                    "HVD_AUTOTUNE_LOG=l",
                                    "HVD_AUTOTUNE_FILE=f",
                                    "HVD_AUTOTUNE_WARMUP_SAMPLES=1",
                                    "HVD_AUTOTUNE_STEPS_PER_SAMPLE=2",
                                    "HVD_AUTOTUNE_MAX_SAMPLES=9",
                                    "HVD_NET_DEVICES=eth0",
                                    "UCX_NET_DEVICES=eth1",
                                    "HVD_HOST_CORES=3"});
  CHECK(config.fusion_threshold == 32 << 20);
  CHECK(config.disable_group_fusion);
  CHECK(config.batch_wait_us == 2000);
  CHECK(config.thresholds.host.one_shot_bytes == 4096);
  CHECK(config.thresholds.host.staged_piece_bytes == 1 << 20);
  CHECK(config.thresholds.host.peer_reads.least_bytes == 7 << 20);
  CHECK(config.thresholds.rails_bytes == 2 << 20);
  CHECK(config.thresholds.message.segment_bytes == 3 << 20);
  CHECK(config.thresholds.message.ring_bytes == 5 << 20);
  CHECK(config.thresholds.message.deterministic);
  CHECK_FALSE(config.dynamic_process_sets);
  CHECK(config.max_pending == 70000);
  CHECK(config.timeline == "DYNAMIC");
  CHECK(config.log_level == LogLevel::kDebug);
  CHECK(config.autotune);
  CHECK(config.autotune_log == "l");
  CHECK(config.autotune_file == "f");
  CHECK(config.autotune_warmup == 1);
  CHECK(config.autotune_steps == 2);
  CHECK(config.autotune_samples == 9);
  CHECK(config.net_devices == "eth0");
  CHECK(config.host_cores == 3);
  CHECK(Make({"UCX_NET_DEVICES=eth1"}).net_devices == "eth1");
}

TEST_CASE("what is set and what looks misspelt is kept to be said") {
  const EngineConfig config = Make({"HVD_AUTOTUN=1", "HOROVOD_FUSION_THRESHOLD=1024"});
  CHECK(config.set ==
        std::vector<std::string>{"HVD_FUSION_THRESHOLD 1K (from HOROVOD_FUSION_THRESHOLD)"});
  CHECK(config.doubts ==
        std::vector<std::string>{"HVD_AUTOTUN is no setting; did you mean HVD_AUTOTUNE?"});
}

TEST_CASE("a wrong value is refused by name") {
  const std::vector<std::string> wrong = {"HOROVOD_FUSION_THRESHOLD=big"};
  CHECK_THAT(std::string(MakeConfig(wrong).status().message()),
             Contains("HOROVOD_FUSION_THRESHOLD must be bytes"));
  const std::vector<std::string> cores = {"HVD_HOST_CORES=0"};
  CHECK_THAT(std::string(MakeConfig(cores).status().message()),
             Contains("HVD_HOST_CORES is \"0\""));
}

}  // namespace
}  // namespace hvd::rt
