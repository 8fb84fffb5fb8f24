#include "cli/front/borrowed_options.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/source_error.h"
#include "cli/front/words/horovod_config.h"

namespace hvd {
namespace {

constexpr absl::string_view kStartTimeout = "HOROVOD_START_TIMEOUT";

std::vector<BorrowedOption> FromEnvironment(const FrontWorld& world) {
  for (const std::string& entry : world.environment) {
    const std::string value = entry.substr(std::min(entry.size(), kStartTimeout.size() + 1));
    if (!absl::StartsWith(entry, absl::StrCat(kStartTimeout, "=")) || value.empty()) continue;
    BorrowedOption option;
    option.words = {"--start-timeout", value};
    option.origin = option.place = std::string(kStartTimeout);
    option.shown = ShowWithCaret(entry, kStartTimeout.size() + 1);
    return {option};
  }
  return {};
}

// As in a command line of its own; what is said then has its place here.
absl::Status Check(const BorrowedOption& option) {
  std::vector<std::string> alone = option.words;
  alone.push_back("command");
  const absl::Status status = ParseOptions(alone, {true, {}}).status();
  if (status.ok()) return status;
  const absl::string_view why = status.message().substr(0, status.message().find('\n'));
  return absl::InvalidArgumentError(absl::StrCat(option.place, ": ", why, "\n", option.shown));
}

}  // namespace

absl::StatusOr<std::vector<BorrowedOption>> BorrowOptions(const TypedOptions& typed,
                                                          const FrontWorld& world) {
  std::vector<BorrowedOption> all = FromEnvironment(world);
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
    if (absl::Status status = Check(option); !status.ok()) return status;
  }
  return all;
}

}  // namespace hvd
