// SPDX-License-Identifier: Apache-2.0
#include "cli/front/python_hook.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvd::cli {
namespace {

constexpr const char* kVariable = "PYTHONPATH";
// The package beside hvdrun: in an installed tree, in a Python wheel, in a source checkout.
constexpr std::array kPackages = {"../share/hvd/python/hvd", "..", "../../python/hvd"};
constexpr const char* kHook = "compat/startup";

std::string HookIn(const std::filesystem::path& package) {
  return (package / kHook).lexically_normal().string();
}

absl::StatusOr<std::string> FindHook(const FrontWorld& world) {
  std::vector<std::string> looked;
  for (const char* package : kPackages) {
    const std::string hook = HookIn(std::filesystem::path(world.program_directory) / package);
    if (world.file_exists(hook + "/sitecustomize.py")) return hook;
    looked.push_back(hook);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--compat horovod needs hvd's Python package beside hvdrun, and it is not there; install hvd "
      "with it (cmake --install puts it into share/hvd/python). There is no\n  ",
      absl::StrJoin(looked, "\n  ")));
}

}  // namespace

std::string PythonPackage(const FrontWorld& world) {
  const absl::StatusOr<std::string> hook = FindHook(world);
  if (!hook.ok()) return "";
  return hook->substr(0, hook->size() - strlen(kHook) - 1);
}

absl::Status AddPythonHook(const FrontWorld& world, RunOptions* run) {
  const absl::StatusOr<std::string> hook = FindHook(world);
  if (!hook.ok()) return hook.status();
  std::string path = *hook;
  // Hosts that have hvd elsewhere; a folder that is not there is no harm.
  if (!run->prefix.empty()) {
    absl::StrAppend(&path, ":", HookIn(std::filesystem::path(run->prefix) / "bin" / kPackages[0]));
  }
  const std::string head = absl::StrCat(kVariable, "=");
  std::vector<std::string>& all = run->environment;
  const auto found = std::find_if(all.begin(), all.end(), [&](const std::string& entry) {
    return absl::StartsWith(entry, head);
  });
  if (found == all.end()) {
    all.push_back(head + path);
  } else {
    const std::string before = found->substr(head.size());
    *found = absl::StrCat(head, path, before.empty() ? "" : ":", before);
  }
  run->notes.push_back(absl::StrCat("compat horovod: import horovod gives hvd, by ", *hook,
                                    " in the ranks' ", kVariable));
  return absl::OkStatus();
}

}  // namespace hvd::cli
