// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/identity.h"

#include <string>

#include "base/printable.h"
#include "proto/settings/foreign_launcher.h"

namespace hvd::rt {
namespace {

constexpr char kAlone[] = "set HVD_STANDALONE=1 to run alone";

absl::Status Refuse(const ForeignLauncher& launcher) {
  const bool counted = launcher.size > 0;
  const std::string count = std::to_string(launcher.size);
  return absl::FailedPreconditionError(
      launcher.name + " has started this process as one of " + (counted ? count : "several") +
      " (" + launcher.evidence +
      "), which hvd cannot make a job of; start the program by hvdrun: " + "hvdrun -np " +
      (counted ? count : "N") + " PROGRAM. If each is to train by itself, " + kAlone);
}

absl::Status MustBeAlone(const EnvironmentLookup& environment) {
  const absl::StatusOr<bool> meant = IsMeantAlone(environment);
  if (!meant.ok()) return meant.status();
  if (*meant) return absl::OkStatus();
  if (const char* const rank = environment("HVD_RANK")) {
    return absl::FailedPreconditionError(
        "HVD_RANK is " + Printable(rank, 100) +
        " but HVD_LINK is not set: something between hvdrun and this program dropped part of the "
        "environment. Pass HVD_LINK on, or " +
        kAlone);
  }
  const auto launcher = FindForeignLauncher(environment);
  return launcher ? Refuse(*launcher) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<LinkName>> FindLink(const EnvironmentLookup& environment) {
  const char* const link = environment("HVD_LINK");
  if (link == nullptr) {
    const absl::Status alone = MustBeAlone(environment);
    if (!alone.ok()) return alone;
    return std::optional<LinkName>();
  }
  LinkName name;
  if (!ParseLinkName(link, &name)) {
    return absl::FailedPreconditionError(
        "HVD_LINK does not look as hvdrun wrote it; start the program with hvdrun, or unset "
        "HVD_LINK and HVD_RANK to run alone");
  }
  return std::optional<LinkName>(name);
}

}  // namespace hvd::rt
