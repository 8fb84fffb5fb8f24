// Options of other launchers that hvdrun does not have (yet): old job scripts get told so by name.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hvd {

// `name` with its dashes, without a value.
bool IsHorovodOption(const std::string& name);

// How hvdrun has it what this option of mpirun, mpiexec or torchrun does; empty for any other.
absl::string_view AdviceFor(absl::string_view name);

}  // namespace hvd
