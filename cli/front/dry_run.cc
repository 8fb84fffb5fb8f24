// SPDX-License-Identifier: Apache-2.0
#include "cli/front/dry_run.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/printable.h"
#include "placement/core_plan.h"
#include "placement/host_plan.h"

namespace hvd::cli {
namespace {

constexpr int kColumns = 6;
using Row = std::array<std::string, kColumns>;

// Numbers stand to the right, words to the left.
constexpr std::array<bool, kColumns> kToTheRight = {true, false, true, true, false, false};

std::string Counted(int64_t count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string Heading(const RunOptions& options) {
  int64_t slots = 0;
  for (const HostSlots& host : options.hosts) slots += host.slots;
  if (options.topology.size() == 0) {
    return absl::StrCat(Counted(options.np, "rank"), " on hosts that are not known yet (",
                        options.hosts_source, ")\n");
  }
  return absl::StrCat(Counted(options.np, "rank"), " on ",
                      Counted(options.topology.hosts().size(), "host"), " (",
                      Printable(options.hosts_source), ": ", Counted(options.hosts.size(), "host"),
                      ", ", Counted(slots, "slot"), ")\n");
}

std::string FormatTable(const std::vector<Row>& rows) {
  std::array<size_t, kColumns> widths = {};
  for (const Row& row : rows) {
    for (int i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (int i = 0; i < kColumns; ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      line += (i > 0 ? "  " : "") + (kToTheRight[i] ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// "2 ranks at least, 8 at most; their hosts come from: ./hosts.sh"
std::string ElasticLines(const RunOptions& options) {
  if (!options.elastic.has_value()) return "";
  const ElasticOptions& elastic = *options.elastic;
  const std::string most = elastic.max_np == 0 ? std::string("as many as there are slots at most")
                                               : absl::StrCat(elastic.max_np, " at most");
  const std::string source = !elastic.discovery_script.empty()
                                 ? absl::StrCat("the output of ", elastic.discovery_script)
                             : !elastic.manager_look.empty() ? options.manager
                                                             : elastic.hostfile;
  const std::string looks = source.empty()
                                ? "; the hosts stay these"
                                : absl::StrCat("; each ", elastic.discovery_interval_s,
                                               "s the hosts are those in ", Printable(source));
  return absl::StrCat("members come and go: ", Counted(elastic.min_np, "rank"), " at least, ", most,
                      looks, "\n");
}

// As a shell would take it back.
std::string ShellWord(const std::string& word) {
  static constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  if (Printable(word) != word) {
    return absl::StrCat("$'", Printable(absl::StrReplaceAll(word, {{"\\", "\\\\"}, {"'", "\\'"}})),
                        "'");
  }
  std::string quoted = "'";
  for (const char byte : word) quoted += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
  return quoted + "'";
}

// Returns what hvdd will give to the slots of a host that is this machine.
absl::StatusOr<HostPlan> PlanOwnHost(int slots, const RunOptions& options,
                                     const FrontWorld& world) {
  HostDevices devices;
  devices.cores = world.cores;
  devices.mask = InheritedMask(world.environment);
  if (world.find_cards && options.gpus_per_rank != 0) {
    CardSearch search = world.find_cards();
    devices.gpus = VisibleGpus(search.cards, devices.mask);
    devices.no_gpus = std::move(search.problem);
  }
  return PlanHost({slots, options.gpus_per_rank, options.binds_cores, options.most_cores}, devices);
}

// By host of the topology; those of other machines stay empty.
absl::StatusOr<std::vector<HostPlan>> PlanHosts(const RunOptions& options,
                                                const FrontWorld& world) {
  const auto& hosts = options.topology.hosts();
  std::vector<HostPlan> plans(hosts.size());
  for (size_t host = 0; host < hosts.size(); ++host) {
    if (!options.is_local[host]) continue;
    absl::StatusOr<HostPlan> plan = PlanOwnHost(hosts[host].ranks, options, world);
    if (!plan.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("host ", hosts[host].name, ": ", plan.status().message()));
    }
    plans[host] = *std::move(plan);
  }
  return plans;
}

Row RowOf(int rank, const RunOptions& options, const std::vector<HostPlan>& plans) {
  const RankPlace& place = options.topology.place(rank);
  const int slot = place.local_rank;  // at the start of a job
  const std::vector<SlotShare>& shares = plans[place.host].slots;
  const SlotShare share = shares.empty() ? SlotShare() : shares[slot];
  return {absl::StrCat(rank),       options.topology.hosts()[place.host].name,
          absl::StrCat(slot),       absl::StrCat(place.local_rank),
          FormatCores(share.cores), FormatGpus(slot, share)};
}

}  // namespace

absl::StatusOr<std::string> FormatPlan(const RunOptions& options, const FrontWorld& world) {
  const absl::StatusOr<std::vector<HostPlan>> plans = PlanHosts(options, world);
  if (!plans.ok()) return plans.status();
  std::vector<Row> rows;
  for (int rank = 0; rank < options.topology.size(); ++rank) {
    if (rank == 0) rows.push_back({"rank", "host", "slot", "local_rank", "cores", "GPU"});
    rows.push_back(RowOf(rank, options, *plans));
  }
  std::string notes;
  for (const std::string& note : options.notes) notes += note + "\n";
  for (size_t host = 0; host < plans->size(); ++host) {
    const std::string& note = (*plans)[host].note;
    if (note.empty()) continue;
    absl::StrAppend(&notes, "host ", options.topology.hosts()[host].name, ": ", note, "\n");
  }
  std::string command;
  for (const std::string& word : options.command) command += " " + ShellWord(word);
  return Heading(options) + ElasticLines(options) + notes + FormatTable(rows) +
         (command.empty() ? "" : "command:" + command + "\n");
}

}  // namespace hvd::cli
