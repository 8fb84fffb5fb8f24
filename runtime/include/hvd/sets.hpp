// SPDX-License-Identifier: Apache-2.0
// Process sets, for hvd.hpp, which includes it: groups of ranks with collectives of their own. A
// set is its number, for Options::process_set.
//
//   hvd::Options options;
//   options.process_set = hvd::add_process_set({0, 2});  // on every rank of the job
//   if (hvd::process_set_rank(options.process_set) >= 0) hvd::allreduce(gradient, options);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hvd/hvd.h"
#include "hvd/types.hpp"

namespace hvd {

// Every rank of the job calls it with the same global ranks, members or not. Throws
// HVD_ERR_DUPLICATE when there is such a set.
inline int add_process_set(const std::vector<int32_t>& ranks) {
  int32_t set = -1;
  internal::ThrowIfError(
      hvd_add_process_set(ranks.data(), static_cast<int32_t>(ranks.size()), &set));
  return set;
}

// Its members alone call it; `key` tells sets of the same ranks apart.
inline int add_process_set_of_members(const std::vector<int32_t>& ranks,
                                      const std::string& key = "") {
  int32_t set = -1;
  internal::ThrowIfError(hvd_add_process_set_members(
      ranks.data(), static_cast<int32_t>(ranks.size()), key.c_str(), &set));
  return set;
}

// By those who have made it, all of them.
inline void remove_process_set(int set) { internal::ThrowIfError(hvd_remove_process_set(set)); }

// This rank's index in the set: -1 when it is no member, or there is no such set.
inline int process_set_rank(int set) { return hvd_process_set_rank(set); }
// The number of its members: -1 when there is no such set.
inline int process_set_size(int set) { return hvd_process_set_size(set); }

// Its members' global ranks, ascending.
inline std::vector<int32_t> process_set_ranks(int set) {
  const int32_t size = hvd_process_set_size(set);
  std::vector<int32_t> ranks(size > 0 ? static_cast<size_t>(size) : 0);
  internal::ThrowIfError(hvd_process_set_ranks(set, ranks.data()));
  return ranks;
}

// Returns when every rank of the set has called it and all that this rank submitted before is done.
inline void barrier(int process_set) {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = process_set;
  internal::ThrowIfError(hvd_barrier(&options));
}

// The numbers of all sets, ascending; 0, all ranks, is the first.
inline std::vector<int32_t> process_set_ids() {
  std::vector<int32_t> ids(static_cast<size_t>(hvd_process_set_count() + 1));
  int32_t count = 0;
  for (;;) {  // another thread may add some meanwhile
    internal::ThrowIfError(
        hvd_process_set_ids(ids.data(), static_cast<int32_t>(ids.size()), &count));
    const bool all = static_cast<size_t>(count) <= ids.size();
    ids.resize(static_cast<size_t>(count));
    if (all) return ids;
  }
}

}  // namespace hvd
