// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/options.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/source_error.h"
#include "cli/front/words/elastic_options.h"
#include "cli/front/words/horovod_flags.h"
#include "cli/front/words/horovod_words.h"
#include "cli/front/words/option_table.h"
#include "cli/front/words/option_values.h"
#include "hostfile/host_item.h"
#include "proto/settings/setting_text.h"

namespace hvd::cli {
namespace {

constexpr int kMaxPort = 65535;
constexpr int kMaxGpusPerRank = 64;
// Beats go out every quarter of a second at the quickest; a shorter lease would end healthy hosts.
constexpr double kShortestLease = 1;

absl::Status ReadContainment(const std::string& text, int* field) {
  static constexpr std::array kLevels = {"auto", "namespace", "cgroup", "subreaper"};
  if (text.empty()) return absl::OkStatus();
  for (size_t level = 0; level < kLevels.size(); ++level) {
    if (text == kLevels[level]) {
      *field = static_cast<int>(level);
      return absl::OkStatus();
    }
  }
  return WrongValue(
      {"--containment", text},
      absl::StrCat(" must be auto, namespace, cgroup or subreaper, not ", Quoted(text)),
      "for example --containment namespace");
}

absl::Status ReadBind(const std::string& text, bool* field) {
  *field = text != "none";
  if (text.empty() || text == "cores" || text == "none") return absl::OkStatus();
  return WrongValue({"--bind", text}, absl::StrCat(" must be cores or none, not ", Quoted(text)),
                    "for example --bind none");
}

absl::Status ReadGpus(const std::string& text, std::optional<int>* field) {
  if (text.empty()) return absl::OkStatus();
  int count = 0;
  absl::Status status = ReadNumber({"--gpus-per-rank", text}, {0, kMaxGpusPerRank, 1}, &count);
  if (status.ok()) *field = count;
  return status;
}

absl::Status ReadCompat(const std::string& text, bool* field) {
  *field = text == "horovod";
  if (text.empty() || *field) return absl::OkStatus();
  return WrongValue({"--compat", text}, absl::StrCat(" must be horovod, not ", Quoted(text)),
                    "for example --compat horovod");
}

absl::Status ReadStdin(const std::string& text, int* field) {
  if (text.empty() || text == "none" || text == "all") {
    *field = text.empty() ? 0 : text == "none" ? -1 : -2;
    return absl::OkStatus();
  }
  const Given given{"--stdin", text};
  if (ReadNumber(given, {0, kMaxRanks - 1, 0}, field).ok()) return absl::OkStatus();
  return WrongValue(given, absl::StrCat(" must be none, all or a rank, not ", Quoted(text)),
                    "for example --stdin none");
}

// At most one mention: two lists of hosts would leave open which counts.
absl::Status ReadOnce(const std::string& name, const std::vector<std::string>& mentions,
                      std::string* field) {
  if (mentions.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is given ", mentions.size(), " times; put all hosts into one"));
  }
  if (!mentions.empty()) *field = mentions.front();
  return absl::OkStatus();
}

absl::Status ReadHosts(const OptionTexts& texts, TypedOptions* typed) {
  typed->has_hosts = !texts.hosts.empty();
  typed->has_hostfile = !texts.hostfile.empty();
  if (typed->has_hosts && typed->has_hostfile) {
    return absl::InvalidArgumentError("-H and --hostfile exclude each other; keep one of them");
  }
  absl::Status status = ReadOnce("-H", texts.hosts, &typed->hosts);
  status.Update(ReadOnce("--hostfile", texts.hostfile, &typed->hostfile));
  status.Update(ReadNumber({"-np", texts.np}, {1, kMaxRanks, 4}, &typed->np));
  return status;
}

absl::Status ReadRun(const OptionTexts& texts, RunOptions* run) {
  absl::Status status =
      ReadNumber({"--ssh-port", texts.ssh_port}, {1, kMaxPort, 22}, &run->ssh_port);
  status.Update(ReadTime({"--start-timeout", texts.start_timeout}, 0.001, &run->start_timeout_s));
  status.Update(ReadTime({"--timeout", texts.timeout}, 0, &run->run_timeout_s));
  status.Update(ReadTime({"--lease", texts.lease}, kShortestLease, &run->lease_s));
  status.Update(ReadTime({"--grace", texts.grace}, 0, &run->grace_s));
  run->grace_is_given = !texts.grace.empty();
  run->waits_for_hosts = !texts.start_timeout.empty();
  status.Update(ReadContainment(texts.containment, &run->containment));
  status.Update(ReadBind(texts.bind, &run->binds_cores));
  status.Update(ReadGpus(texts.gpus_per_rank, &run->gpus_per_rank));
  status.Update(ReadCompat(texts.compat, &run->compat_horovod));
  status.Update(ReadStdin(texts.stdin_target, &run->stdin_rank));
  run->ssh_identity = texts.ssh_identity;
  run->agent_is_given = !texts.rsh_agent.empty();
  if (texts.rsh_agent != "ssh") run->rsh_agent = texts.rsh_agent;
  run->prefix = texts.prefix;
  run->verbose = texts.verbose;
  run->output_directory = texts.output;
  run->timestamps = texts.timestamps;
  run->report_bindings = texts.report_bindings;
  return status;
}

// The setting's own words speak of its unit; here the person has used the option's.
absl::Status WrongSetting(const SettingText& given, absl::string_view why) {
  const std::string names = given.option->names;
  const std::string name = names.substr(0, names.find(','));
  const std::string hint = absl::StrCat("for example ", name, " ", given.option->example);
  const bool has_unit = *given.option->unit != '\0';
  if (!has_unit) return WrongValue({name, given.typed}, absl::StrCat(" ", why), hint);
  const Setting& setting = Settings()[static_cast<size_t>(given.option->id)];
  const double one = ParseSetting(setting, absl::StrCat("1", given.option->unit))->number;
  const bool bytes = setting.kind == SettingKind::kBytes;
  return WrongValue({name, given.typed},
                    absl::StrCat(" must be a number of ", given.option->unit, bytes ? "B" : "",
                                 " from ", setting.least / one, " to ", setting.most / one,
                                 ", or have another unit behind it (as in ", bytes ? "64K" : "50us",
                                 "), not ", Quoted(given.typed)),
                    hint);
}

// A given setting is a wish for the workers' environment; -x comes later and wins.
absl::Status ReadSettings(const OptionTexts& texts, std::vector<std::string>* forwarded) {
  std::vector<std::string> wishes;
  for (const SettingText& given : texts.settings) {
    const Setting& setting = Settings()[static_cast<size_t>(given.option->id)];
    if (const auto value = ParseSetting(setting, given.text); !value.ok()) {
      return WrongSetting(given, value.status().message());
    }
    wishes.push_back(absl::StrCat(setting.name, "=", given.text));
  }
  forwarded->insert(forwarded->begin(), wishes.begin(), wishes.end());
  return absl::OkStatus();
}

Ask WhatIsAsked(const OptionTexts& texts) {
  if (texts.help) return Ask::kHelp;
  if (texts.version) return Ask::kVersion;
  if (texts.check_build) return Ask::kCheckBuild;
  return texts.dry_run ? Ask::kDryRun : Ask::kRun;
}

// Before the options that were typed, so that these count. A flag's opposite counts as well.
std::vector<std::string> Borrow(const std::vector<BorrowedOption>& borrowed,
                                const std::vector<std::string>& options, RunOptions* run) {
  std::vector<std::string> all;
  for (const BorrowedOption& option : borrowed) {
    const std::string& name = option.words.front();
    const HorovodFlag* flag = FindHorovodFlag(name);
    const HorovodFlag* opposite = flag == nullptr ? nullptr : OppositeOf(*flag);
    const bool typed = std::any_of(options.begin(), options.end(), [&](const std::string& word) {
      return word == name || (opposite != nullptr && word == CanonicalName(*opposite));
    });
    if (typed) continue;
    all.insert(all.end(), option.words.begin(), option.words.end());
    run->notes.push_back(
        absl::StrCat(absl::StrJoin(option.words, " "), " (from ", option.origin, ")"));
  }
  all.insert(all.end(), options.begin(), options.end());
  return all;
}

// The words that hvdrun has by itself; what is horovodrun's alone goes into `typed`.
absl::StatusOr<std::vector<std::string>> ReadWords(absl::Span<const std::string> args,
                                                   const Dialect& dialect,
                                                   std::vector<OptionSpelling> spellings,
                                                   TypedOptions* typed) {
  const bool horovod = dialect.horovod || AsksForCompat(args, spellings);
  if (horovod) {
    for (OptionSpelling& spelling : HorovodSpellings()) spellings.push_back(std::move(spelling));
  }
  absl::StatusOr<NormalisedArgs> words = NormaliseArgs(args, spellings);
  if (!words.ok()) return words.status();
  typed->run.command = std::move(words->command);
  std::vector<std::string> options = Borrow(dialect.borrowed, words->options, &typed->run);
  if (!horovod) return options;
  absl::StatusOr<HorovodWords> taken = TakeHorovod(options, spellings);
  if (!taken.ok()) return taken.status();
  typed->config_file = std::move(taken->config_file);
  typed->said = std::move(taken->notes);
  typed->forwarded = std::move(taken->settings);
  return std::move(taken->options);
}

}  // namespace

absl::StatusOr<TypedOptions> ParseOptions(absl::Span<const std::string> args,
                                          const Dialect& dialect) {
  OptionTable table;
  TypedOptions typed;
  const auto words = ReadWords(args, dialect, table.Spellings(), &typed);
  if (!words.ok()) return words.status();
  const absl::StatusOr<OptionTexts> texts = table.Read(*words);
  if (!texts.ok()) return texts.status();
  typed.ask = WhatIsAsked(*texts);
  typed.forwarded.insert(typed.forwarded.end(), texts->forwarded.begin(), texts->forwarded.end());
  absl::Status status = ReadHosts(*texts, &typed);
  status.Update(ReadRun(*texts, &typed.run));
  status.Update(ReadElastic(texts->elastic, &typed));
  if (typed.run.elastic.has_value() && texts->lease.empty()) typed.run.lease_s = kElasticLeaseS;
  typed.run.compat_horovod |= dialect.horovod;
  status.Update(ReadSettings(*texts, &typed.forwarded));
  if (!status.ok()) return status;
  return typed;
}

std::string HelpText() { return OptionTable().Help(); }

}  // namespace hvd::cli
