// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/library_term.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "base/stable_hash.h"
#include "proto/page/host_page.h"
#include "runtime/collective/host/host_collectives.h"
#include "runtime/engine/agreement/board.h"
#include "runtime/engine/direct/direct.h"
#include "runtime/engine/tuning/tuner.h"

namespace hvd::rt {

Term LibraryTerm() {
  const std::string layout = absl::StrCat(
      sizeof(HostPage), " ", sizeof(RankWatch), " ", sizeof(Signature), " ", sizeof(TuneDecision),
      " ", Board::Bytes(3, 5), " ", HostCollectives::HostRegionBytes(3), " ", Direct::Bytes(3), " ",
      std::endian::native == std::endian::little ? "little" : "big");
  return {"libhvd",
          absl::StrCat(HVD_VERSION, " (layout ", absl::Hex(StableHash().Add(layout).value() >> 32),
                       ")"),
          "use the same on all hosts"};
}

}  // namespace hvd::rt
