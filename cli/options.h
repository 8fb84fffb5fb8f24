// The options of hvdrun: what was typed, checked as far as that needs no look at the world.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/run_options.h"

namespace hvd {

enum class Ask { kRun, kDryRun, kHelp, kVersion, kCheckBuild };

struct TypedOptions {
  Ask ask = Ask::kRun;
  int np = 0;  // 0: not given
  bool has_hosts = false;
  std::string hosts;  // -H
  bool has_hostfile = false;
  std::string hostfile;
  std::vector<std::string> forwarded;  // -x, in order
  RunOptions run;                      // command, ssh, times, containment, stdin and output are set
};

// `args` is argv without argv[0]. InvalidArgument has a message for the user.
absl::StatusOr<TypedOptions> ParseOptions(absl::Span<const std::string> args);

std::string HelpText();

}  // namespace hvd
