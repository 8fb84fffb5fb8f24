// SPDX-License-Identifier: Apache-2.0
// The terms that all ranks of a job must have alike, and the comparison when they meet. Pure.
//
// Each rank's card goes to all others with the table of addresses: where its transport is reached,
// and the values of its terms. Every rank therefore compares the same cards and comes to the same
// answer, before anything is exchanged that would depend on them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "hostfile/topology.h"

namespace hvd::rt {

struct Term {
  std::string name;    // "HVD_PIECE_BYTES"
  std::string value;   // as one would write it
  std::string advice;  // what to do when it differs
};

// Returns the term of hvd_init's process sets.
Term ProcessSetsTerm(const std::vector<std::vector<int32_t>>& sets);

std::string WriteCard(std::string_view address, absl::Span<const Term> terms);
// The addresses by rank. FailedPrecondition: ranks differ; names each term in which one differs
// from rank 0, with both values. `mine`: this rank's terms.
absl::StatusOr<std::vector<std::string>> ReadCards(const std::vector<std::string>& cards,
                                                   const Topology& topology,
                                                   absl::Span<const Term> mine);

}  // namespace hvd::rt
