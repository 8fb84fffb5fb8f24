// SPDX-License-Identifier: Apache-2.0
// What a program sees of its job, and asks of hvdrun, through the C ABI: this rank's counters, as
// JSON; the timeline, which hvdrun writes into one file for all ranks, whoever asks for it; time
// for a last checkpoint.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "base/json.h"
#include "runtime/api/process/process.h"
#include "runtime/errors/errors.h"

namespace hvd::rt {
namespace {

// Returns what was counted between `before` and `now`; both are nothing but sums.
RankTotals Since(const RankTotals& before, const RankTotals& now) {
  using Numbers = std::array<uint64_t, sizeof(RankTotals) / sizeof(uint64_t)>;
  const auto earlier = std::bit_cast<Numbers>(before);
  auto numbers = std::bit_cast<Numbers>(now);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] -= earlier[i];
  return std::bit_cast<RankTotals>(numbers);
}

// {"rank":0,"all":{…},"sets":{"0":{…}}}: of the sets those that there are and that have counted
// something; all have what removed ones have counted, too.
std::string RankMetricsJson(const EpochWorld& world, const ProcessSets& sets) {
  const RankWatch& watch = WatchOf(world.page(), world.place().local_rank);
  RankTotals all = {};
  for (const RankMetrics& metrics : watch.metrics) all.Add(metrics);
  Json by_set = Json::object();
  for (const int32_t id : sets.ids()) {
    const ProcessSets::SetPointer set = sets.Find(id);
    if (set == nullptr || set->engine == nullptr) continue;
    RankTotals totals = {};
    totals.Add(watch.metrics[set->region]);
    totals = Since(set->counted_before, totals);
    if (totals.all_calls() == 0) continue;
    by_set[std::to_string(id)] = MetricsJson(totals);
  }
  return RenderJson({{"rank", world.rank()}, {"all", MetricsJson(all)}, {"sets", by_set}});
}

hvd_status_t Copy(const std::string& json, char* buffer, size_t* bytes) {
  const size_t room = *bytes;
  *bytes = json.size() + 1;
  if (buffer == nullptr) return HVD_OK;
  if (room < *bytes) {
    return Fail(HVD_ERR_INVALID, "the buffer has " + std::to_string(room) + " bytes; " +
                                     std::to_string(*bytes) + " are needed");
  }
  std::memcpy(buffer, json.c_str(), *bytes);
  return HVD_OK;
}

hvd_status_t AskTimeline(const char* path) {
  return Guarded([path]() -> hvd_status_t {
    if (Process::Get().engine() == nullptr) return NotInitialized();
    return Return(Process::Get().AskTimeline(path));
  });
}

}  // namespace
}  // namespace hvd::rt

extern "C" {

hvd_status_t hvd_metrics(char* buffer, size_t* bytes) {
  return hvd::rt::Guarded([&]() -> hvd_status_t {
    if (bytes == nullptr) return hvd::rt::Fail(HVD_ERR_INVALID, "bytes is NULL");
    const std::shared_ptr<hvd::rt::Engine> engine = hvd::rt::Process::Get().engine();
    if (engine == nullptr) return hvd::rt::NotInitialized();
    return hvd::rt::Copy(hvd::rt::RankMetricsJson(engine->world(), hvd::rt::Process::Get().sets()),
                         buffer, bytes);
  });
}

hvd_status_t hvd_start_timeline(const char* path) {
  if (path == nullptr || *path == 0) return hvd::rt::Fail(HVD_ERR_INVALID, "path is NULL or empty");
  return hvd::rt::AskTimeline(path);
}

hvd_status_t hvd_stop_timeline(void) { return hvd::rt::AskTimeline(""); }

hvd_status_t hvd_set_grace(double seconds) {
  return hvd::rt::Guarded([seconds]() -> hvd_status_t {
    constexpr double kYear = 366.0 * 24 * 3600;
    if (!(seconds >= 0 && seconds <= kYear)) {
      return hvd::rt::Fail(HVD_ERR_INVALID, "the grace must be from 0 to " + std::to_string(kYear) +
                                                " seconds, not " + std::to_string(seconds));
    }
    if (hvd::rt::Process::Get().engine() == nullptr) return hvd::rt::NotInitialized();
    const auto milliseconds = static_cast<uint64_t>(std::ceil(seconds * 1000));
    return hvd::rt::Return(hvd::rt::Process::Get().AskGrace(milliseconds));
  });
}

}  // extern "C"
