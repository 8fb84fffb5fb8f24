// SPDX-License-Identifier: Apache-2.0
// The ranks' agreement on a commit, or on nothing but whether the members are to change: one small
// allreduce on the global set, under a name of hvd's own.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/sets/process_sets.h"
#include "runtime/state/commit_book.h"

namespace hvd::rt {

// Collective on the global set of `sets`. Puts this host's word on a change into `side`. Aborted:
// the epoch is broken. FailedPrecondition: this rank is in none, or one has joined.
absl::StatusOr<Agreement> Agree(AgreementSide side, const ProcessSets& sets);
// The message of HVD_ERR_HOSTS_UPDATED.
extern const char kHostsUpdated[];

}  // namespace hvd::rt
