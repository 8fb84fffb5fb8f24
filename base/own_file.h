// SPDX-License-Identifier: Apache-2.0
// Files that hvd writes under names which another user may have prepared: in /tmp, in a directory
// that many share. Nobody's link leads them elsewhere. Thread-safe; errors are for the user,
// without the path.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hvd {

// All give a descriptor that the caller owns.

// A directory, for the calls below. With `make`, what is missing of it is made, for this user
// alone. A symbolic link on the way counts only if it belongs to this user, to root or to the owner
// of the directory that it lies in.
absl::StatusOr<int> OpenOwnDirectory(const std::string& path, bool make);

// Makes it for this user alone, or takes one of this user's. No link.
absl::StatusOr<int> OpenOwnSubdirectory(int directory, const std::string& name);

// Makes it for this user alone, or opens a regular file of this user's to be written over; what
// lies in it is still there. No link.
absl::StatusOr<int> OpenOwnFile(int directory, const std::string& name);

}  // namespace hvd
