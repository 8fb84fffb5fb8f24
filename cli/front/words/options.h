// SPDX-License-Identifier: Apache-2.0
// The options of hvdrun: what was typed, checked as far as that needs no look at the world.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/front/words/run_options.h"

namespace hvd::cli {

enum class Ask { kRun, kDryRun, kHelp, kVersion, kCheckBuild };

struct TypedOptions {
  Ask ask = Ask::kRun;
  int np = 0;  // 0: not given; run.elastic->min_np is 0, too, where neither is
  bool has_hosts = false;
  std::string hosts;  // -H
  bool has_hostfile = false;
  std::string hostfile;
  std::vector<std::string> forwarded;  // -x, in order
  std::string config_file;             // --config-file; empty: none
  std::vector<std::string> said;       // what of it has no effect, a line each
  RunOptions run;                      // command, ssh, times, containment, stdin and output are set
};

// An option that is given elsewhere than in the command line.
struct BorrowedOption {
  std::vector<std::string> words;  // "--start-timeout", "60"
  std::string origin;              // "job.yaml:3"
  std::string place, shown;        // for errors: "job.yaml:3:9", the line with a caret
};

// How a command line is read.
struct Dialect {
  bool horovod = false;  // horovodrun's words as well, as --compat horovod does
  // A borrowed option counts if the command line mentions neither it nor its opposite.
  std::vector<BorrowedOption> borrowed;
};

// `args` is argv without argv[0]. InvalidArgument has a message for the user.
absl::StatusOr<TypedOptions> ParseOptions(absl::Span<const std::string> args,
                                          const Dialect& dialect = {});

std::string HelpText();

}  // namespace hvd::cli
