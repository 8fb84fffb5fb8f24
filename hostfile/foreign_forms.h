// SPDX-License-Identifier: Apache-2.0
// What other launchers' host lists allow and this grammar does not, and what is often taken for it:
// each is told by its name, with what to write instead.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/source_error.h"

namespace hvd {

// An error if `word`, a whole mention of a host, has such a form: "^host", "+n0", "ssh://host",
// "host(x2)".
absl::Status RefuseForeignForm(const SourceLine& line, absl::string_view word);

// Says what to write instead of a hostfile's key of another launcher; empty: not known.
absl::string_view AdviceForKey(absl::string_view key);

// The slots behind a host's colon: a whole number. `mention` is what stands before the colon;
// "22:4", "2222", "4;touch" and "slots=4" are told as what they look like.
absl::StatusOr<int> ParseColonSlots(const SourceLine& line, absl::string_view mention,
                                    absl::string_view text);

}  // namespace hvd
