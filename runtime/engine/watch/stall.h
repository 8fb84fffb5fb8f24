// SPDX-License-Identifier: Apache-2.0
// Answers hvdd's question what this rank has pending in one process set. hvdd decides, without any
// thread or clock of the rank's, whether somebody waits for too long.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "proto/page/host_page.h"
#include "proto/page/pending_list.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {

// A pending request; it lives as long as its owner holds the lock.
struct PendingRequest {
  const std::string* name = nullptr;  // null: of a send or receive, which is called by its ranks
  const Request* request = nullptr;
  bool moving = false;  // as PendingTensor's
};

class StallAnswer {
 public:
  // `members`: the global ranks of the set; empty: all. `rank`: this one's number in the set.
  StallAnswer(const WatchPlace& place, const std::vector<int>& members, int rank)
      : page_(place.page),
        area_(&WatchOf(place.page, place.local_rank).pending[place.region]),
        set_(place.set),
        members_(members.begin(), members.end()),
        rank_(rank) {}

  // REQUIRES: one thread at a time.
  void Give(std::vector<PendingRequest> pending);

 private:
  HostPage* const page_;
  PendingArea* const area_;
  const int32_t set_;
  PendingTensor DescribePair(const PendingRequest& pending) const;
  int64_t GlobalRank(int rank) const { return members_.empty() ? rank : members_[rank]; }

  const std::vector<int64_t> members_;
  const int rank_;
};

}  // namespace hvd::rt
