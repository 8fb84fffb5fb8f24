// SPDX-License-Identifier: Apache-2.0
// The term that every rank must have alike of the library itself.
#pragma once

#include "runtime/engine/tuning/terms.h"

namespace hvd::rt {

// Says what the library is called, and how it lays out what ranks share. Comes before all other
// terms, for only ranks that have the same library have the same terms.
Term LibraryTerm();

}  // namespace hvd::rt
