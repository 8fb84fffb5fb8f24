// SPDX-License-Identifier: Apache-2.0
// The command line as people type it → one spelling an option. CLI11 by itself refuses -np and
// takes -hostfile for -h; and only who knows which options take a value can tell where the program
// begins.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hvd::cli {

struct OptionSpelling {
  std::string typed;      // "-np"
  std::string canonical;  // "--num-proc"
  bool takes_value = false;
  bool is_number = false;   // then "-n4" means "-n 4"
  bool takes_pair = false;  // its value is two words, which become one: "10 600"
};

struct NormalisedArgs {
  // {"--num-proc", "8", "--verbose"}: canonical names, each value a word of its own.
  std::vector<std::string> options;
  // From the first word that is neither an option nor an option's value, or from after "--".
  std::vector<std::string> command;
};

// `args` is argv without argv[0]. InvalidArgument names the unknown option and the nearest known.
absl::StatusOr<NormalisedArgs> NormaliseArgs(absl::Span<const std::string> args,
                                             absl::Span<const OptionSpelling> spellings);

}  // namespace hvd::cli
