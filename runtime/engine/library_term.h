// SPDX-License-Identifier: Apache-2.0
// What every rank must have alike of the library itself.
#pragma once

#include "runtime/engine/tuning/terms.h"

namespace hvd {

// What it is called, and how it lays out what ranks share. Comes before all other terms, for only
// those who have the same have the same terms.
Term LibraryTerm();

}  // namespace hvd
