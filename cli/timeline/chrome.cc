// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"
#include "cli/timeline/format.h"

namespace hvd::cli {
namespace {

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// "12.345", without the cost of a printf.
void AppendMicroseconds(int64_t ns, std::string* out) {
  if (ns < 0) {
    out->push_back('-');
    ns = -ns;
  }
  const int64_t rest = ns % 1000;
  absl::StrAppend(out, ns / 1000, ".");
  for (const int64_t digit : {rest / 100, rest / 10 % 10, rest % 10}) {
    out->push_back(static_cast<char>('0' + digit));
  }
}

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

  void Event(const TimelineEvent& event, std::string* out) override {
    absl::StrAppend(out, ",\n{\"name\":\"", View(event.activity),
                    "\",\"ph\":\"X\",\"pid\":", event.row.rank, ",\"tid\":", event.row.row,
                    ",\"ts\":");
    AppendMicroseconds(event.begin_ns - start_ns_, out);
    absl::StrAppend(out, ",\"dur\":");
    AppendMicroseconds(event.end_ns - event.begin_ns, out);
    if (event.bytes != 0) absl::StrAppend(out, ",\"args\":{\"bytes\":", event.bytes, "}");
    out->push_back('}');
  }

  std::string Lost(int rank, uint64_t count, int64_t at_ns) override {
    std::string json = absl::StrCat(",\n{\"name\":\"", count,
                                    " events are missing before here\",\"ph\":\"i\",\"s\":\"p\","
                                    "\"pid\":",
                                    rank, ",\"tid\":0,\"ts\":");
    AppendMicroseconds(at_ns - start_ns_, &json);
    return json + "}";
  }

  std::string Epoch(uint64_t number, int64_t at_ns) override {
    std::string json = absl::StrCat(",\n{\"name\":\"epoch ", number,
                                    "\",\"ph\":\"i\",\"s\":\"g\",\"pid\":0,\"tid\":0,\"ts\":");
    AppendMicroseconds(at_ns - start_ns_, &json);
    return json + "}";
  }

  std::string End() override { return "\n]\n"; }

 private:
  int64_t start_ns_ = 0;
};

}  // namespace

std::unique_ptr<TimelineFormat> ChromeTimeline() { return std::make_unique<Chrome>(); }

std::unique_ptr<TimelineFormat> TimelineFormatFor(std::string_view path) {
  const std::string name(path);
  const bool perfetto = absl::EndsWith(name, ".pftrace") || absl::EndsWith(name, ".perfetto-trace");
  return perfetto ? PerfettoTimeline() : ChromeTimeline();
}

}  // namespace hvd::cli
