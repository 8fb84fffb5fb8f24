// What to do about a call that a limit of this host has refused.
#pragma once

#include "absl/strings/string_view.h"

namespace hvd {

// The end of a message about this errno; empty where no limit is behind it.
absl::string_view RemedyFor(int error);

}  // namespace hvd
