#include "cli/job_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/descriptor.h"
#include "cli/job_summary.h"

namespace hvd {
namespace {

// Length of the well-formed UTF-8 sequence that `bytes` begins with; 0 if there is none.
size_t SequenceLength(std::string_view bytes) {
  const auto byte = [&bytes](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || beyond ? 0 : length;
}

const char* Bool(bool value) { return value ? "true" : "false"; }

const char* EndingName(Ending ending) {
  static constexpr const char* kNames[] = {
      "none",    "interrupted", "terminated",   "hung_up",     "timed_out",
      "stalled", "not_joined",  "console_lost", "output_gone", "spawner_lost"};
  return kNames[static_cast<int>(ending)];
}

std::string RankJson(const JobFacts& facts, int rank) {
  static constexpr const char* kPhases[] = {"planned", "running", "exited", "lost"};
  const RankFact& fact = facts.ranks[rank];
  const v1::RankExited& exit = fact.exit;
  const int host = facts.topology.place(rank).host;
  std::string json =
      absl::StrFormat(R"({"rank":%d,"host":%s,"pid":%u,"state":"%s")", rank,
                      JsonString(facts.topology.hosts()[host].name), fact.pid, kPhases[fact.phase]);
  if (fact.phase == RankFact::kExited) {
    absl::StrAppendFormat(
        &json,
        R"(,"exit_code":%d,"signal":%d,"core_dumped":%s,"out_of_memory":%s,"after_abort":%s,)"
        R"("joined":%s,"left":%s,"ended_s":%.6f,"description":%s,"activity":%s,"last_lines":[)",
        exit.exit_code(), exit.signal(), Bool(exit.core_dumped()), Bool(exit.out_of_memory()),
        Bool(exit.after_abort()), Bool(exit.joined()), Bool(exit.left()), fact.ended_s,
        JsonString(DescribeExit(exit)), JsonString(exit.activity()));
    for (int i = 0; i < exit.last_lines_size(); ++i) {
      absl::StrAppend(&json, i ? "," : "", JsonString(exit.last_lines(i)));
    }
    json += "]";
    if (exit.counts().calls() != 0) absl::StrAppend(&json, ",\"counts\":", exit.counts().json());
  }
  if (!fact.broke.empty()) absl::StrAppend(&json, ",\"broke\":", JsonString(fact.broke));
  return json + "}";
}

std::string HostJson(const JobFacts& facts, int host) {
  static constexpr const char* kLevels[] = {"unknown", "namespace", "cgroup", "subreaper"};
  static constexpr const char* kFaults[] = {"none", "not_started", "launch_failed", "lost"};
  const HostFact& fact = facts.hosts[host];
  const HostShape& shape = facts.topology.hosts()[host];
  std::string json = absl::StrFormat(R"({"name":%s,"ranks":%d,"containment":"%s","fault":"%s")",
                                     JsonString(shape.name), shape.ranks,
                                     kLevels[fact.containment & 3], kFaults[fact.fault]);
  if (fact.fault != HostFact::kNone) {
    absl::StrAppendFormat(&json, R"(,"fault_s":%.6f,"cause":%s,"remedy":%s,"evidence":%s)",
                          fact.fault_s, JsonString(fact.cause), JsonString(fact.remedy),
                          JsonString(fact.evidence));
  }
  absl::StrAppend(&json, ",\"survivors\":", fact.survivors, "}");
  return json;
}

std::string CulpritJson(const JobFacts& facts, const Verdict& verdict) {
  if (verdict.kind == Verdict::kRank) return absl::StrCat(R"({"rank":)", verdict.index, "}");
  if (verdict.kind == Verdict::kHost) {
    const std::string& name = facts.topology.hosts()[verdict.index].name;
    return absl::StrCat(R"({"host":)", JsonString(name), "}");
  }
  if (verdict.kind == Verdict::kEnding) {
    return absl::StrCat(R"({"ending":")", EndingName(facts.ending),
                        "\",\"text\":", JsonString(facts.ending_text), "}");
  }
  return "null";
}

absl::Status Failure(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

}  // namespace

std::string JsonString(std::string_view bytes) {
  std::string json = "\"";
  while (!bytes.empty()) {
    const size_t length = SequenceLength(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (length == 0) {
      json += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      json += '\\';
      json += bytes[0];
    } else if (first == '\n') {
      json += "\\n";
    } else if (first < 0x20 || first == 0x7f) {
      absl::StrAppendFormat(&json, "\\u%04x", first);
    } else {
      json += bytes.substr(0, length);
    }
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return json + "\"";
}

std::string RenderJobReport(const JobFacts& facts, const Verdict& verdict) {
  std::string json = absl::StrFormat(
      "{\"version\":1,\"job\":%s,\"np\":%d,\"duration_s\":%.6f,\"exit_code\":%d,\n"
      "\"culprit\":%s,\n\"summary\":%s,\n\"hosts\":[",
      JsonString(facts.job), facts.topology.size(), facts.duration_s, verdict.exit_code,
      CulpritJson(facts, verdict), SummaryJson(facts));
  for (size_t i = 0; i < facts.hosts.size(); ++i) {
    absl::StrAppend(&json, i ? ",\n" : "\n", HostJson(facts, i));
  }
  json += "],\n\"ranks\":[";
  for (size_t i = 0; i < facts.ranks.size(); ++i) {
    absl::StrAppend(&json, i ? ",\n" : "\n", RankJson(facts, i));
  }
  return json + "]}\n";
}

absl::Status WriteJobReport(const std::string& directory, const std::string& report) {
  std::error_code made;
  std::filesystem::create_directories(directory, made);
  std::string path = absl::StrCat(directory, "/.job.json.XXXXXX");
  Descriptor file(mkostemp(path.data(), O_CLOEXEC));
  if (!file && made) {
    return absl::UnavailableError(absl::StrCat("cannot make ", directory, ": ", made.message()));
  }
  if (!file) return Failure("write in", directory);
  for (size_t at = 0; at < report.size();) {
    const ssize_t written = write(file.get(), report.data() + at, report.size() - at);
    if (written <= 0) {
      const absl::Status failure = Failure("write", path);
      unlink(path.c_str());
      return failure;
    }
    at += written;
  }
  fchmod(file.get(), 0644);
  if (rename(path.c_str(), absl::StrCat(directory, "/job.json").c_str()) != 0) {
    const absl::Status failure = Failure("rename", path);
    unlink(path.c_str());
    return failure;
  }
  return absl::OkStatus();
}

absl::Status WriteJobReportWithin(double seconds, std::string directory, std::string report) {
  auto promise = std::make_shared<std::promise<absl::Status>>();
  std::future<absl::Status> written = promise->get_future();
  std::thread([promise, directory, report = std::move(report)] {
    promise->set_value(WriteJobReport(directory, report));
  }).detach();
  if (written.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready) {
    return written.get();
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "cannot write in ", directory, ": its file system has not answered for ", seconds, " s"));
}

}  // namespace hvd
