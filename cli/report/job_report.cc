#include "cli/report/job_report.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/descriptor.h"
#include "base/own_file.h"
#include "base/printable.h"
#include "cli/report/job_summary.h"

namespace hvd {
namespace {

const char* Bool(bool value) { return value ? "true" : "false"; }

const char* EndingName(Ending ending) {
  static constexpr const char* kNames[] = {
      "none",       "interrupted",  "terminated",  "hung_up",      "timed_out", "stalled",
      "not_joined", "console_lost", "output_gone", "spawner_lost", "paused"};
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
  if (fact.worker.pid() != 0) {
    absl::StrAppendFormat(&json, R"(,"worker":{"pid":%d,"description":%s,"wrapper":%s})",
                          fact.worker.pid(), JsonString(DescribeWorkerEnd(fact.worker)),
                          JsonString(fact.worker.wrapper()));
  }
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
  if (verdict.kind == Verdict::kLostOutput) return R"({"ending":"output_lost"})";
  return "null";
}

absl::Status Failure(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", Printable(path)));
}

}  // namespace

std::string JsonString(std::string_view bytes) {
  std::string json = "\"";
  while (!bytes.empty()) {
    const Character one = TakeCharacter(&bytes);
    if (!one.well_formed) {
      json += "\\ufffd";
    } else if (one.code == '\n') {
      json += "\\n";
    } else if (!one.printable) {
      absl::StrAppendFormat(&json, "\\u%04x", one.code);
    } else {
      if (one.code == '"' || one.code == '\\') json += '\\';
      json += one.bytes;
    }
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
  json += "],\n\"lost_output\":[";
  for (size_t i = 0; i < facts.lost_output.size(); ++i) {
    absl::StrAppend(&json, i ? "," : "", JsonString(facts.lost_output[i]));
  }
  json += "],\n\"ranks\":[";
  for (size_t i = 0; i < facts.ranks.size(); ++i) {
    absl::StrAppend(&json, i ? ",\n" : "\n", RankJson(facts, i));
  }
  return json + "]}\n";
}

absl::Status WriteJobReport(const std::string& directory, const std::string& report) {
  const absl::StatusOr<int> opened = OpenOwnDirectory(directory, true);
  if (!opened.ok()) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", Printable(directory), ": ", opened.status().message()));
  }
  const Descriptor place(*opened);
  // Under a name of its own until it is whole.
  const std::string name = absl::StrCat(".job.json.", getpid());
  unlinkat(place.get(), name.c_str(), 0);  // of a process that had our number and was killed
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Descriptor file(openat(place.get(), name.c_str(), kFlags, 0600));
  if (!file.valid()) return Failure("write in", directory);
  for (size_t at = 0; at < report.size();) {
    const ssize_t written = write(file.get(), report.data() + at, report.size() - at);
    if (written <= 0) {
      const absl::Status failure = Failure("write in", directory);
      unlinkat(place.get(), name.c_str(), 0);
      return failure;
    }
    at += written;
  }
  if (renameat(place.get(), name.c_str(), place.get(), "job.json") == 0) return absl::OkStatus();
  const absl::Status failure = Failure("replace job.json in", directory);
  unlinkat(place.get(), name.c_str(), 0);
  return failure;
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
  return absl::DeadlineExceededError(absl::StrCat("cannot write in ", Printable(directory),
                                                  ": its file system has not answered for ",
                                                  seconds, " s"));
}

}  // namespace hvd
