// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/identity.h"

namespace hvd {

absl::StatusOr<std::optional<LinkName>> FindLink(const EnvironmentLookup& environment) {
  const char* link = environment("HVD_LINK");
  const char* rank = environment("HVD_RANK");
  if (link == nullptr && rank == nullptr) return std::optional<LinkName>();
  if (link == nullptr) {
    return absl::FailedPreconditionError(
        std::string("HVD_RANK is ") + rank +
        " but HVD_LINK is not set: something between hvdrun and this program dropped part of the "
        "environment. Pass HVD_LINK on, or unset HVD_RANK to run alone");
  }
  LinkName name;
  if (!ParseLinkName(link, &name)) {
    return absl::FailedPreconditionError(
        "HVD_LINK does not look as hvdrun wrote it; start the program with hvdrun, or unset "
        "HVD_LINK and HVD_RANK to run alone");
  }
  return std::optional<LinkName>(name);
}

}  // namespace hvd
