// The C ABI's counters: this rank's, as JSON.
#include <cstring>

#include "runtime/api/errors.h"
#include "runtime/api/process.h"

namespace hvd {
namespace {

// {"rank":0,"all":{…},"sets":{"0":{…}}}: only sets that have counted something.
std::string RankMetricsJson(const EpochWorld& world, int rank) {
  const RankWatch& watch = WatchOf(world.page(), world.place().local_rank);
  RankTotals all = {};
  std::string sets;
  for (int set = 0; set < kWatchedSets; ++set) {
    RankTotals totals = {};
    totals.Add(watch.metrics[set]);
    if (totals.all_calls() == 0) continue;
    all.Add(totals);
    sets += (sets.empty() ? "\"" : ",\"") + std::to_string(set) + "\":" + MetricsJson(totals);
  }
  return "{\"rank\":" + std::to_string(rank) + ",\"all\":" + MetricsJson(all) + ",\"sets\":{" +
         sets + "}}";
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

}  // namespace
}  // namespace hvd

extern "C" hvd_status_t hvd_metrics(char* buffer, size_t* bytes) {
  return hvd::Guarded([&]() -> hvd_status_t {
    if (bytes == nullptr) return hvd::Fail(HVD_ERR_INVALID, "bytes is NULL");
    const std::shared_ptr<hvd::Engine> engine = hvd::Process::Get().engine();
    if (engine == nullptr) return hvd::NotInitialized();
    const hvd::EpochWorld& world = engine->world();
    return hvd::Copy(hvd::RankMetricsJson(world, world.rank()), buffer, bytes);
  });
}
