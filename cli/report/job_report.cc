// SPDX-License-Identifier: Apache-2.0
#include "cli/report/job_report.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/json.h"
#include "base/own_file.h"
#include "base/printable.h"
#include "cli/report/job_summary.h"

namespace hvd::cli {
namespace {

const char* EndingName(Ending ending) {
  static constexpr const char* kNames[] = {
      "none",       "interrupted",  "terminated",  "hung_up",      "timed_out", "stalled",
      "not_joined", "console_lost", "output_gone", "spawner_lost", "paused",    "too_few",
      "state_lost", "reset_limit",  "program_bug", "no_hosts",     "signal"};
  static_assert(std::size(kNames) == static_cast<size_t>(Ending::kSignal) + 1);
  return kNames[static_cast<int>(ending)];
}

// Adds the end of a rank that has ended.
void AddEnd(const RankFact& fact, Json* json) {
  const v1::RankExited& exit = fact.exit;
  json->update({{"exit_code", exit.exit_code()},
                {"signal", exit.signal()},
                {"core_dumped", exit.core_dumped()},
                {"out_of_memory", exit.out_of_memory()},
                {"after_abort", exit.after_abort()},
                {"joined", exit.joined()},
                {"left", exit.left()},
                {"ended_s", Rounded(fact.ended_s)},
                {"description", JsonText(DescribeExit(exit))},
                {"activity", JsonText(exit.activity())}});
  Json& lines = (*json)["last_lines"] = Json::array();
  for (const std::string& line : exit.last_lines()) lines.push_back(JsonText(line));
  if (exit.counts().calls() == 0) return;
  Json counts = Json::parse(exit.counts().json(), nullptr, false);  // of another hvdd's writing
  if (!counts.is_discarded()) (*json)["counts"] = std::move(counts);
}

Json RankJson(const JobFacts& facts, int index) {
  static constexpr const char* kPhases[] = {"planned", "running", "exited", "lost"};
  const RankFact& fact = facts.ranks[index];
  Json json = {{"rank", fact.rank >= 0 ? Json(fact.rank) : Json()},
               {"host", JsonText(facts.hosts[fact.host].name)},
               {"pid", fact.pid},
               {"state", kPhases[fact.phase]}};
  if (facts.elastic) json.update({{"member", index + 1}, {"share", fact.share}});
  if (fact.phase == RankFact::kExited) AddEnd(fact, &json);
  if (!fact.broke.empty()) json["broke"] = JsonText(fact.broke);
  if (fact.worker.pid() != 0) {
    json["worker"] = {{"pid", fact.worker.pid()},
                      {"description", JsonText(DescribeWorkerEnd(fact.worker))},
                      {"wrapper", JsonText(fact.worker.wrapper())}};
  }
  return json;
}

Json HostJson(const JobFacts& facts, int host) {
  static constexpr const char* kLevels[] = {"unknown", "namespace", "cgroup", "subreaper"};
  static constexpr const char* kFaults[] = {"none", "not_started", "launch_failed", "lost"};
  const HostFact& fact = facts.hosts[host];
  Json json = {{"name", JsonText(fact.name)},
               {"ranks", fact.ranks},
               {"containment", kLevels[fact.containment & 3]},
               {"fault", kFaults[fact.fault]}};
  if (fact.fault != HostFact::kNone) {
    json.update({{"fault_s", Rounded(fact.fault_s)},
                 {"cause", JsonText(fact.cause)},
                 {"remedy", JsonText(fact.remedy)},
                 {"evidence", JsonText(fact.evidence)}});
  }
  json["survivors"] = fact.survivors;
  return json;
}

Json CulpritJson(const JobFacts& facts, const Verdict& verdict) {
  if (verdict.kind == Verdict::kRank) return {{"rank", facts.ranks[verdict.index].rank}};
  if (verdict.kind == Verdict::kHost) {
    return {{"host", JsonText(facts.hosts[verdict.index].name)}};
  }
  if (verdict.kind == Verdict::kEnding) {
    return {{"ending", EndingName(facts.ending)}, {"text", JsonText(facts.ending_text)}};
  }
  if (verdict.kind == Verdict::kLostOutput) return {{"ending", "output_lost"}};
  return nullptr;
}

Json EpochJson(const EpochRecord& epoch) {
  return {{"number", epoch.number},
          {"ranks", epoch.ranks},
          {"hosts", epoch.hosts},
          {"cause", JsonText(epoch.cause)},
          {"commit", epoch.commit},
          {"rolled_back", epoch.rolled_back},
          {"seconds", Rounded(epoch.seconds)}};
}

// Adds all epochs and members that a job whose members come and go has ever had.
void AddMembers(const JobFacts& facts, Json* json) {
  Json& epochs = (*json)["epochs"] = Json::array();
  for (const EpochRecord& epoch : facts.epochs) epochs.push_back(EpochJson(epoch));
  Json& members = (*json)["members"] = Json::array();
  for (size_t i = 0; i < facts.ranks.size(); ++i) members.push_back(RankJson(facts, i));
}

absl::Status Failure(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", Printable(path)));
}

}  // namespace

std::string RenderJobReport(const JobFacts& facts, const Verdict& verdict) {
  Json json = {{"version", 1},
               {"job", JsonText(facts.job)},
               {"np", facts.topology.size()},
               {"duration_s", Rounded(facts.duration_s)},
               {"exit_code", verdict.exit_code},
               {"culprit", CulpritJson(facts, verdict)},
               {"summary", SummaryJson(facts)}};
  Json& hosts = json["hosts"] = Json::array();
  for (size_t i = 0; i < facts.hosts.size(); ++i) hosts.push_back(HostJson(facts, i));
  Json& lost = json["lost_output"] = Json::array();
  for (const std::string& text : facts.lost_output) lost.push_back(JsonText(text));
  Json& files = json["lost_files"] = Json::array();
  for (const std::string& text : facts.lost_files) files.push_back(JsonText(text));
  Json& ranks = json["ranks"] = Json::array();
  for (size_t i = 0; i < facts.ranks.size(); ++i) {
    if (!facts.ranks[i].past) ranks.push_back(RankJson(facts, i));
  }
  if (!facts.adopted_from.empty()) json["adopted_from"] = JsonText(facts.adopted_from);
  if (facts.elastic) AddMembers(facts, &json);
  return RenderJsonLines(json);
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
      absl::Status failure = Failure("write in", directory);
      unlinkat(place.get(), name.c_str(), 0);
      return failure;
    }
    at += written;
  }
  if (close(file.Release()) != 0 && errno != EINTR) {
    absl::Status failure = Failure("write in", directory);
    unlinkat(place.get(), name.c_str(), 0);
    return failure;
  }
  if (renameat(place.get(), name.c_str(), place.get(), "job.json") == 0) return absl::OkStatus();
  absl::Status failure = Failure("replace job.json in", directory);
  unlinkat(place.get(), name.c_str(), 0);
  return failure;
}

absl::Status WriteJobReportWithin(double seconds, const std::string& directory,
                                  std::string report) {
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

}  // namespace hvd::cli
