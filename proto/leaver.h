// Ranks abort an epoch themselves when one has left it while others wait for it; whom they name.
#pragma once

#include "absl/strings/string_view.h"

namespace hvd {

// The rank that has left, of an abort's cause (HostPage::abort_text) of libhvd's words for this:
// "rank 3 has left the job (hvd_shutdown) while …" (Board::AbortLeft). -1: it is another cause.
int LeaverIn(absl::string_view cause);

}  // namespace hvd
