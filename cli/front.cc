#include "cli/front.h"

#include "absl/strings/str_cat.h"
#include "cli/check_build.h"
#include "cli/dry_run.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/plan.h"

namespace hvd {
namespace {

constexpr const char* kSeeHelp =
    "usage: hvdrun -np N [options] command...; hvdrun --help says more\n";

FrontOutcome Print(std::string text) {
  FrontOutcome outcome;
  outcome.exit_code = kExitOk;
  outcome.out = std::move(text);
  return outcome;
}

FrontOutcome Refuse(const absl::Status& status, const char* after) {
  FrontOutcome outcome;
  outcome.exit_code = kExitUsage;
  outcome.err = absl::StrCat("hvdrun: ", status.message(), "\n", after);
  return outcome;
}

FrontOutcome Plan(const TypedOptions& typed, const FrontWorld& world) {
  if (typed.run.command.empty() && typed.ask == Ask::kRun) {
    return Refuse(absl::InvalidArgumentError("which command should the ranks run?"), kSeeHelp);
  }
  absl::StatusOr<RunOptions> options = PlanRun(typed, world);
  if (!options.ok()) return Refuse(options.status(), "");
  if (typed.ask == Ask::kDryRun) return Print(FormatPlan(*options, world));
  FrontOutcome outcome;
  outcome.options = *std::move(options);
  return outcome;
}

}  // namespace

FrontOutcome DecideRun(int argc, const char* const* argv, const FrontWorld& world) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const absl::StatusOr<TypedOptions> typed = ParseOptions(args);
  if (!typed.ok()) return Refuse(typed.status(), "");
  switch (typed->ask) {
    case Ask::kHelp:
      return Print(HelpText());
    case Ask::kVersion:
      return Print(absl::StrCat("hvdrun ", HVD_VERSION, "\n"));
    case Ask::kCheckBuild:
      return Print(FormatCheckBuild(world.probe_library()));
    case Ask::kDryRun:
    case Ask::kRun:
      break;
  }
  return Plan(*typed, world);
}

}  // namespace hvd
