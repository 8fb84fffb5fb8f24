// SPDX-License-Identifier: Apache-2.0
#include "cli/front/borrowed_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/source_error.h"
#include "cli/front/words/horovod_config.h"

namespace hvd::cli {
namespace {

// A variable of Horovod's that says the same as an option.
struct Variable {
  const char* name;
  const char* option;
  bool elastic;  // it counts in such a job only, as Horovod's does
};
constexpr std::array kVariables = {
    Variable{"HOROVOD_START_TIMEOUT", "--start-timeout", false},
    Variable{"HOROVOD_ELASTIC_TIMEOUT", "--elastic-timeout", true},
};

std::vector<BorrowedOption> FromEnvironment(bool elastic, const FrontWorld& world) {
  std::vector<BorrowedOption> all;
  for (const Variable& variable : kVariables) {
    if (variable.elastic && !elastic) continue;
    const std::string start = absl::StrCat(variable.name, "=");
    const auto entry = std::find_if(
        world.environment.begin(), world.environment.end(), [&](const std::string& known) {
          return absl::StartsWith(known, start) && known.size() > start.size();
        });
    if (entry == world.environment.end()) continue;
    BorrowedOption option;
    option.words = {variable.option, entry->substr(start.size())};
    option.origin = option.place = variable.name;
    option.shown = ShowWithCaret(*entry, start.size());
    all.push_back(std::move(option));
  }
  return all;
}

// As in a command line of its own; what is said then has its place here.
absl::Status Check(const BorrowedOption& option, bool elastic) {
  std::vector<std::string> alone = option.words;
  if (elastic) alone.insert(alone.begin(), {"--min-np", "1"});
  alone.push_back("command");
  const absl::Status status = ParseOptions(alone, {true, {}}).status();
  if (status.ok()) return status;
  const absl::string_view why = status.message().substr(0, status.message().find('\n'));
  return absl::InvalidArgumentError(absl::StrCat(option.place, ": ", why, "\n", option.shown));
}

}  // namespace

absl::StatusOr<std::vector<BorrowedOption>> BorrowOptions(const TypedOptions& typed,
                                                          const FrontWorld& world) {
  const bool elastic = typed.run.elastic.has_value();
  std::vector<BorrowedOption> all = FromEnvironment(elastic, world);
  if (!typed.config_file.empty()) {
    const absl::StatusOr<std::string> text = world.read_file(typed.config_file);
    if (!text.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("the config file ", text.status().message()));
    }
    auto options = ReadHorovodConfig(*text, typed.config_file);
    if (!options.ok()) return options.status();
    all.insert(all.end(), options->begin(), options->end());
  }
  for (const BorrowedOption& option : all) {
    if (absl::Status status = Check(option, elastic); !status.ok()) return status;
  }
  return all;
}

}  // namespace hvd::cli
