// SPDX-License-Identifier: Apache-2.0
#include "proto/settings/settings.h"

#include <catch2/catch.hpp>
#include <set>

#include "proto/settings/setting_text.h"
#include "proto/settings/setting_values.h"

namespace hvd {
namespace {

using Catch::Matchers::Contains;
using Lines = std::vector<std::string>;

const Setting& Of(SettingId id) { return Settings()[static_cast<size_t>(id)]; }

double Number(SettingId id, const char* text) {
  const auto value = ParseSetting(Of(id), text);
  INFO(text << ": " << value.status().message());
  REQUIRE(value.ok());
  return value->number;
}

std::string Refusal(SettingId id, const char* text) {
  return std::string(ParseSetting(Of(id), text).status().message());
}

SettingValues Read(const Lines& environment) {
  const auto values = SettingValues::Read(environment);
  INFO(values.status().message());
  REQUIRE(values.ok());
  return *values;
}

TEST_CASE("the table is in the order of its ids, each name once, each default allowed") {
  std::set<std::string> names;
  int place = 0;
  for (const Setting& setting : Settings()) {
    INFO(setting.name);
    CHECK(static_cast<int>(setting.id) == place++);
    CHECK(names.insert(setting.name).second);
    if (setting.alias != nullptr) CHECK(names.insert(setting.alias).second);
    if (setting.fallback != nullptr) CHECK(ParseSetting(setting, setting.fallback).ok());
  }
  for (const ForeignSetting& foreign : ForeignSettings()) CHECK(names.insert(foreign.name).second);
}

TEST_CASE("bytes have units of 1024") {
  const SettingId id = SettingId::kFusionThreshold;
  CHECK(Number(id, "0") == 0);
  CHECK(Number(id, "65536") == 65536);
  CHECK(Number(id, "64K") == 65536);
  CHECK(Number(id, "64kb") == 65536);
  CHECK(Number(id, " 64 KiB ") == 65536);
  CHECK(Number(id, "1.5M") == 1.5 * 1048576);
  CHECK(Number(id, "4G") == 4.0 * (1 << 30));
  for (const char* wrong :
       {"64Q", "-1", "+1", "1e3", "0x10", "inf", "nan", "1.5", "M", "64 64", "1..5"}) {
    CHECK_THAT(Refusal(id, wrong),
               Contains("must be bytes, like 65536, 64K or 1.5M, from 0 to 4G"));
  }
  CHECK_THAT(Refusal(id, "5G"), Contains("not \"5G\"; the nearest is 4G"));
}

TEST_CASE("times have units, a bare number is in the setting's own") {
  CHECK(Number(SettingId::kStallWarn, "60") == 60);
  CHECK(Number(SettingId::kStallWarn, "1.5") == 1.5);
  CHECK(Number(SettingId::kStallWarn, "500ms") == 0.5);
  CHECK(Number(SettingId::kStallWarn, "2m") == 120);
  CHECK(Number(SettingId::kBatchWait, "50") == 50);
  CHECK(Number(SettingId::kBatchWait, "1ms") == 1000);
  CHECK_THAT(Refusal(SettingId::kStallWarn, "0"), Contains("the nearest is 0.1s"));
  CHECK_THAT(Refusal(SettingId::kBatchWait, "2s"), Contains("the nearest is 1000000us"));
}

TEST_CASE("flags and words") {
  for (const char* yes : {"1", "true", "YES", "on"}) CHECK(Number(SettingId::kAutotune, yes) == 1);
  for (const char* no : {"0", "False", "no", "off"}) CHECK(Number(SettingId::kAutotune, no) == 0);
  CHECK_THAT(Refusal(SettingId::kAutotune, "2"), Contains("must be 1 or 0"));
  CHECK(Number(SettingId::kLogLevel, "DEBUG") == 1);
  CHECK_THAT(Refusal(SettingId::kLogLevel, "wraning"), Contains("did you mean warning?"));
  CHECK(Number(SettingId::kTransport, "UCX") == 2);
  CHECK_THAT(Refusal(SettingId::kTransport, "tpc"),
             Contains("must be one of auto, tcp, ucx") && Contains("did you mean tcp?"));
  CHECK_THAT(Refusal(SettingId::kAutotuneSteps, "1.5"), Contains("must be a whole number from 1"));
}

TEST_CASE("Horovod's names count, in Horovod's units, but hvd's own win") {
  const SettingValues values =
      Read({"HOROVOD_FUSION_THRESHOLD=33554432", "HOROVOD_CYCLE_TIME=3.5"});
  CHECK(values.Number(SettingId::kFusionThreshold) == 32 << 20);
  CHECK(values.Number(SettingId::kBatchWait) == 3500);
  CHECK(values.Describe() ==
        Lines{"HVD_FUSION_THRESHOLD 32M (from HOROVOD_FUSION_THRESHOLD)",
              "HVD_BATCH_WAIT_US 3500us (from HOROVOD_CYCLE_TIME); there is no cycle, only a batch "
              "that nobody waits for stays open"});

  const SettingValues both = Read({"HOROVOD_FUSION_THRESHOLD=1024", "HVD_FUSION_THRESHOLD=8M",
                                   "HVD_LOG_LEVEL=info", "HOROVOD_LOG_LEVEL=INFO"});
  CHECK(both.Number(SettingId::kFusionThreshold) == 8 << 20);
  CHECK(
      both.Describe() ==
      Lines{"HVD_FUSION_THRESHOLD 8M (HOROVOD_FUSION_THRESHOLD says otherwise and does not count)",
            "HVD_LOG_LEVEL info"});
}

TEST_CASE("an empty variable is none, and of equal names the first counts") {
  const SettingValues values =
      Read({"HVD_AUTOTUNE=", "HVD_TIMELINE=/a", "HVD_TIMELINE=/b", "PATH=/bin"});
  CHECK_FALSE(values.IsSet(SettingId::kAutotune));
  CHECK(values.Text(SettingId::kTimeline) == "/a");
  CHECK(values.Describe() == Lines{"HVD_TIMELINE \"/a\""});
}

TEST_CASE("every wrong value is named") {
  const auto values = SettingValues::Read(
      Lines{"HVD_FUSION_THRESHOLD=lots", "HOROVOD_CYCLE_TIME=(None,)", "HVD_AUTOTUNE=maybe"});
  REQUIRE(values.status().code() == absl::StatusCode::kInvalidArgument);
  const std::string message(values.status().message());
  CHECK_THAT(message, Contains("HVD_FUSION_THRESHOLD must be bytes"));
  CHECK_THAT(message,
             Contains("HOROVOD_CYCLE_TIME must be milliseconds from 0 to 1000, not \"(None,)\""));
  CHECK_THAT(message, Contains("HVD_AUTOTUNE must be 1 or 0"));
}

TEST_CASE("Horovod's settings without a counterpart are said to have no effect") {
  CHECK_THAT(Read({"HOROVOD_CACHE_CAPACITY=0"}).Describe().at(0),
             Contains("HOROVOD_CACHE_CAPACITY has no effect: known tensors"));
  CHECK(Read({"HOROVOD_ELASTIC=1"}).Describe().size() == 1);
  CHECK(Read({"HOROVOD_ELASTIC=1", "HVD_ELASTIC=1"}).Describe().empty());  // hvdd's own
}

TEST_CASE("a misspelt name is warned of, other programs' are not") {
  CHECK(Read({"HVD_FUSION_TRESHOLD=1"}).warnings() ==
        Lines{"HVD_FUSION_TRESHOLD is no setting; did you mean HVD_FUSION_THRESHOLD?"});
  CHECK(Read({"HVD_RANK=0", "HVD_HOST_CORES=2", "HVD_DATA_OF_MY_PROGRAM=x", "HOROVOD_FUSION=1"})
            .warnings()
            .empty());
}

TEST_CASE("an autotune file without autotune is pointed out, by the name that was given") {
  CHECK(Read({"HVD_AUTOTUNE_FILE=t.env", "HOROVOD_AUTOTUNE_LOG=t.csv"}).warnings() ==
        Lines{"HOROVOD_AUTOTUNE_LOG has no effect without HVD_AUTOTUNE=1 (hvdrun --autotune)",
              "HVD_AUTOTUNE_FILE has no effect without HVD_AUTOTUNE=1 (hvdrun --autotune)"});
  CHECK(Read({"HVD_AUTOTUNE_FILE=t.env", "HVD_AUTOTUNE=1"}).warnings().empty());
}

}  // namespace
}  // namespace hvd
