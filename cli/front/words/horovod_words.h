// SPDX-License-Identifier: Apache-2.0
// horovodrun's own words in a command line: what they become, and what is said of them. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/front/words/argv_normaliser.h"

namespace hvd::cli {

struct HorovodWords {
  std::vector<std::string> options;   // hvdrun's own, as the normaliser gave them
  std::vector<std::string> settings;  // NAME=VALUE for the workers
  std::vector<std::string> notes;     // of what has no effect, a line for each reason
  std::string config_file;            // empty: none
};

// `options` are canonical, as NormaliseArgs gives them for hvdrun's spellings and HorovodSpellings.
// InvalidArgument for what hvdrun cannot do.
absl::StatusOr<HorovodWords> TakeHorovod(absl::Span<const std::string> options,
                                         absl::Span<const OptionSpelling> spellings);

// Whether --compat is among hvdrun's words, and not the program's.
bool AsksForCompat(absl::Span<const std::string> args, absl::Span<const OptionSpelling> own);

}  // namespace hvd::cli
