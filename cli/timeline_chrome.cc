#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/job_report.h"
#include "cli/timeline_format.h"

namespace hvd {
namespace {

class Chrome final : public TimelineFormat {
 public:
  std::string Begin(int64_t start_ns, int64_t epoch_us) override {
    start_ns_ = start_ns;
    // As Horovod does: the first record holds the calendar's time of ts 0.
    return absl::StrFormat(
        "[\n"
        R"({"name":"start_time_since_epoch_in_micros","ph":"M","pid":0,"args":{)"
        R"("start_time_since_epoch_in_micros":%d}})",
        epoch_us);
  }

  std::string NameRank(int rank, std::string_view name) override {
    return absl::StrFormat(
        ",\n"
        R"({"name":"process_name","ph":"M","pid":%d,"args":{"name":%s}},)"
        "\n"
        R"({"name":"process_sort_index","ph":"M","pid":%d,"args":{"sort_index":%d}})",
        rank, JsonString(name), rank, rank);
  }

  std::string NameRow(const TimelineRow& row, std::string_view name) override {
    return absl::StrFormat(
        ",\n"
        R"({"name":"thread_name","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}})",
        row.rank, row.row, JsonString(name));
  }

  std::string Event(const TimelineEvent& event) override {
    std::string json = absl::StrFormat(
        ",\n"
        R"({"name":"%s","ph":"X","pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f)",
        event.activity, event.row.rank, event.row.row, Microseconds(event.begin_ns),
        (event.end_ns - event.begin_ns) * 1e-3);
    if (event.bytes != 0) absl::StrAppend(&json, R"(,"args":{"bytes":)", event.bytes, "}");
    return json + "}";
  }

  std::string Lost(int rank, uint64_t count, int64_t at_ns) override {
    return absl::StrFormat(
        ",\n"
        R"({"name":"%d events are missing before here","ph":"i","s":"p","pid":%d,"tid":0,)"
        R"("ts":%.3f})",
        count, rank, Microseconds(at_ns));
  }

  std::string End() override { return "\n]\n"; }

 private:
  double Microseconds(int64_t at_ns) const { return (at_ns - start_ns_) * 1e-3; }
  int64_t start_ns_ = 0;
};

}  // namespace

std::unique_ptr<TimelineFormat> ChromeTimeline() { return std::make_unique<Chrome>(); }

std::unique_ptr<TimelineFormat> TimelineFormatFor(std::string_view path) {
  const std::string name(path);
  const bool perfetto = absl::EndsWith(name, ".pftrace") || absl::EndsWith(name, ".perfetto-trace");
  return perfetto ? PerfettoTimeline() : ChromeTimeline();
}

}  // namespace hvd
