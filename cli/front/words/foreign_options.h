// SPDX-License-Identifier: Apache-2.0
// Options of other launchers that hvdrun does not have: old job scripts get told how it has them.
// The options of horovodrun are in horovod_flags.
#pragma once

#include "absl/strings/string_view.h"

namespace hvd::cli {

// How hvdrun has it what this option of mpirun, mpiexec or torchrun does; empty for any other.
// `name` with its dashes, without a value.
absl::string_view AdviceFor(absl::string_view name);

}  // namespace hvd::cli
