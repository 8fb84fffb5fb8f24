// SPDX-License-Identifier: Apache-2.0
#include "cli/front/front.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/source_error.h"
#include "cli/front/adopted.h"
#include "cli/front/borrowed_options.h"
#include "cli/front/check_build.h"
#include "cli/front/dry_run.h"
#include "cli/front/plan.h"
#include "cli/front/python_hook.h"
#include "cli/front/words/horovod_flags.h"
#include "cli/front/words/options.h"
#include "proto/exit_code.h"
#include "proto/settings/foreign_launcher.h"
#include "proto/settings/setting_values.h"

namespace hvd::cli {
namespace {

constexpr const char* kSeeHelp =
    "usage: hvdrun -np N [options] command...; hvdrun --help says more\n";

FrontOutcome Print(std::string text) {
  FrontOutcome outcome;
  outcome.exit_code = kExitOk;
  outcome.out = std::move(text);
  return outcome;
}

PythonReport AskPython(const std::string& package, const FrontWorld& world) {
  if (!package.empty()) return world.probe_python(package);
  PythonReport report;
  report.python.problem =
      "hvd's Python package is not beside hvdrun; is the installation complete?";
  return report;
}

FrontOutcome CheckBuild(const FrontWorld& world) {
  const LibraryReport library = world.probe_library();
  const std::string package = PythonPackage(world);
  FrontOutcome outcome = Print(FormatCheckBuild(library, AskPython(package, world), package));
  if (!library.problem.empty()) outcome.exit_code = kExitBroken;
  return outcome;
}

FrontOutcome Refuse(const absl::Status& status, const char* after) {
  FrontOutcome outcome;
  outcome.exit_code = kExitUsage;
  outcome.err = absl::StrCat("hvdrun: ", status.message(), "\n", after);
  return outcome;
}

// Says what the workers' settings are, or are not, and what became of the hosts; InvalidArgument
// for a wrong value.
absl::Status CheckSettings(const RunOptions& options, std::string* said) {
  const auto values = SettingValues::Read(options.environment);
  if (!values.ok()) return values.status();
  for (const std::string& warning : values->warnings()) {
    absl::StrAppend(said, "hvdrun: ", warning, "\n");
  }
  if (!options.hosts_note.empty()) absl::StrAppend(said, "hvdrun: ", options.hosts_note, "\n");
  if (options.verbose == 0) return absl::OkStatus();
  for (const std::string& note : options.notes) absl::StrAppend(said, "hvdrun: ", note, "\n");
  for (const std::string& line : values->Describe()) {
    absl::StrAppend(said, "hvdrun: setting ", line, "\n");
  }
  return absl::OkStatus();
}

// The command may stand where the last option took it as its value.
FrontOutcome RefuseNoCommand(absl::Span<const std::string> args) {
  std::string text = "which command should the ranks run?";
  if (args.size() > 1 && !absl::StartsWith(args.back(), "-") &&
      args.back().find_first_not_of("0123456789") != std::string::npos) {
    absl::StrAppend(&text, " ", Quoted(args.back()), " is the value of ", args[args.size() - 2]);
  }
  return Refuse(absl::InvalidArgumentError(text), kSeeHelp);
}

// A launcher that has started hvdrun several times would get as many jobs, each of which believes
// to be the only one. Within a job of ours the variables are ours.
absl::Status MustBeOnce(const FrontWorld& world) {
  const EnvironmentLookup environment = [&world](const char* name) -> const char* {
    const std::string start = absl::StrCat(name, "=");
    for (const std::string& each : world.environment) {
      if (absl::StartsWith(each, start)) return each.c_str() + start.size();
    }
    return nullptr;
  };
  const absl::StatusOr<bool> meant = IsMeantAlone(environment);
  if (!meant.ok()) return meant.status();
  if (*meant || environment("HVD_RANK") != nullptr || IsAdoption(world)) return absl::OkStatus();
  const auto launcher = FindForeignLauncher(environment);
  if (!launcher.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(launcher->name, " has started hvdrun several times (", launcher->evidence,
                   "), and each would run a job of its own; call it once, as in: hvdrun -np ",
                   launcher->size > 0 ? absl::StrCat(launcher->size) : "N",
                   " PROGRAM. If several jobs are meant, set HVD_STANDALONE=1"));
}

// The ranks' places in an elastic job are decided while it runs; the plan has shown that it can
// begin.
void ForgetPlaces(RunOptions* run) {
  run->topology = Topology();
  run->host_of.clear();
  run->is_local.clear();
}

FrontOutcome Plan(const TypedOptions& typed, const FrontWorld& world) {
  if (!typed.run.command.empty() && typed.run.command[0].empty()) {
    return Refuse(
        absl::InvalidArgumentError("the command is empty; is a variable in its place not set?"),
        kSeeHelp);
  }
  const absl::Status once = MustBeOnce(world);
  if (!once.ok()) return Refuse(once, "");
  absl::StatusOr<RunOptions> options = PlanRun(typed, world);
  if (!options.ok()) return Refuse(options.status(), "");
  FrontOutcome outcome;
  for (const std::string& line : typed.said) absl::StrAppend(&outcome.err, "hvdrun: ", line, "\n");
  const absl::Status settings = CheckSettings(*options, &outcome.err);
  if (!settings.ok()) return Refuse(settings, "");
  if (typed.ask == Ask::kDryRun) {
    absl::StatusOr<std::string> table = FormatPlan(*options, world);
    if (!table.ok()) return Refuse(table.status(), "");
    outcome.exit_code = kExitOk;
    outcome.out = *std::move(table);
    return outcome;
  }
  outcome.options = *std::move(options);
  if (outcome.options.elastic.has_value()) ForgetPlaces(&outcome.options);
  return outcome;
}

// Whether the program is called by the name that Horovod's has.
bool IsHorovodrun(absl::string_view called) {
  return called.substr(called.find_last_of('/') + 1) == "horovodrun";
}

absl::StatusOr<TypedOptions> ReadOptions(absl::Span<const std::string> args, Dialect dialect,
                                         const FrontWorld& world) {
  absl::StatusOr<TypedOptions> typed = ParseOptions(args, dialect);
  const bool runs = typed.ok() && (typed->ask == Ask::kRun || typed->ask == Ask::kDryRun);
  if (!runs) return typed;
  auto borrowed = BorrowOptions(*typed, world);
  if (!borrowed.ok()) return borrowed.status();
  if (borrowed->empty()) return typed;
  dialect.borrowed = *std::move(borrowed);
  return ParseOptions(args, dialect);
}

}  // namespace

FrontOutcome DecideRun(int argc, const char* const* argv, const FrontWorld& world) {
  std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const bool adopts = IsAdoption(world);
  const size_t program_words = args.size() - (args.empty() ? 0 : 1);  // behind "--"
  if (adopts) {
    auto words = WithRunOptions(world, args);
    if (!words.ok()) return Refuse(words.status(), "");
    args = *std::move(words);
  }
  const bool horovod = argc > 0 && IsHorovodrun(argv[0]);
  const absl::StatusOr<TypedOptions> typed = ReadOptions(args, {horovod, {}}, world);
  if (!typed.ok()) return Refuse(typed.status(), "");
  if (adopts) {
    const absl::Status fine = CheckRunOptions(*typed, program_words);
    if (!fine.ok()) return Refuse(fine, "");
  }
  switch (typed->ask) {
    case Ask::kHelp:
      return Print(HelpText() + (typed->run.compat_horovod ? HorovodHelp() : ""));
    case Ask::kVersion:
      return Print(absl::StrCat("hvdrun ", HVD_VERSION, "\n"));
    case Ask::kCheckBuild:
      return CheckBuild(world);
    case Ask::kRun:
      if (typed->run.command.empty()) return RefuseNoCommand(args);
      break;
    case Ask::kDryRun:
      break;
  }
  return Plan(*typed, world);
}

}  // namespace hvd::cli
