// SPDX-License-Identifier: Apache-2.0
// Where libhvd lies.
#pragma once

#include <dlfcn.h>

#include <string>

#include "hvd/hvd.h"

namespace hvd::rt {

// Its path; empty: it is not known.
inline std::string OwnPath() {
  Dl_info about = {};
  const bool known = dladdr(reinterpret_cast<const void*>(&hvd_version), &about) != 0;
  return known && about.dli_fname != nullptr ? about.dli_fname : "";
}

}  // namespace hvd::rt
