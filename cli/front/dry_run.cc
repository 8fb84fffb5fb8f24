#include "cli/front/dry_run.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/printable.h"
#include "hostfile/core_plan.h"

namespace hvd {
namespace {

constexpr int kColumns = 5;
using Row = std::array<std::string, kColumns>;

// Numbers stand to the right, words to the left.
constexpr std::array<bool, kColumns> kToTheRight = {true, false, true, false, false};

std::string Counted(int64_t count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string Heading(const RunOptions& options) {
  int64_t slots = 0;
  for (const HostSlots& host : options.hosts) slots += host.slots;
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

}  // namespace

std::string FormatPlan(const RunOptions& options, const FrontWorld& world) {
  const bool any_local =
      std::find(options.is_local.begin(), options.is_local.end(), true) != options.is_local.end();
  const std::vector<std::string> gpus =
      any_local && world.find_gpus ? world.find_gpus() : std::vector<std::string>();
  std::vector<Row> rows = {{"rank", "host", "local_rank", "cores", "GPU"}};
  for (int rank = 0; rank < options.np; ++rank) {
    const RankPlace& place = options.topology.place(rank);
    const bool local = options.is_local[place.host];
    const std::vector<int> cores = local && options.binds_cores
                                       ? CoresFor(place.local_rank, place.local_size, world.cores)
                                       : std::vector<int>();
    const bool gpu = local && place.local_rank < static_cast<int>(gpus.size());
    rows.push_back({absl::StrCat(rank), options.topology.hosts()[place.host].name,
                    absl::StrCat(place.local_rank), FormatCores(cores),
                    gpu ? gpus[place.local_rank] : "-"});
  }
  std::string command;
  for (const std::string& word : options.command) command += " " + ShellWord(word);
  std::string notes;
  for (const std::string& note : options.notes) notes += note + "\n";
  return Heading(options) + notes + FormatTable(rows) +
         (command.empty() ? "" : "command:" + command + "\n");
}

}  // namespace hvd
