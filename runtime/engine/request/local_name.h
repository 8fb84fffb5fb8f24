// SPDX-License-Identifier: Apache-2.0
// A name that this rank has used: the request that is pending under it, and what makes marking it
// again cheap. Each part belongs to the class that it is named for, and nobody else writes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "proto/page/host_page.h"
#include "runtime/engine/request/request.h"

namespace hvd::rt {

// A rank's place for one use of a name that goes directly (direct/direct.h).
struct DirectTicket {
  static constexpr uint32_t kMostNumber = 1024;
  uint32_t number = 0;  // 0: none
  uint64_t round = 0;   // joins completed
  uint64_t count = 0;   // uses in this round
  uint64_t stamp() const { return count + 1; }
  uint32_t line() const { return static_cast<uint32_t>((round % 2) * 2 + count % 2); }
};

struct LocalName {
  const std::string* name = nullptr;
  Request* pending = nullptr;  // guarded by the engine's lock; the executor's once it is marked
  uint32_t turn = 0;           // of those that unnamed calls take, from one on; 0: it is none
  bool prepared = false;       // whether `direct.ticket` is known, and room is kept for it
  uint64_t last_use = 0;       // its sequence
  uint64_t distance = 0;       // from the use before: so many of this rank's submissions

  struct OnBoard {
    uint32_t number = 0;        // of the pending request, once it is on the board
    bool wants_number = false;  // the pending request could go directly, had it a number
  } board;

  struct Directly {
    bool marked = false;    // the pending request is marked directly, and not on the board
    DirectTicket ticket;    // of the latest request
    uint64_t word = 0;      // its mark
    bool in_place = false;  // the mark says where the tensors lie
    bool staged = false;    // in this rank's stage
    bool worked = false;    // this rank has done its part of them
    int64_t begin_ns = 0;   // when it began to, while the timeline is on
  } direct;

  // "allreduce 'grad.3'", for the host's page; of the latest kind.
  struct Noted {
    RequestKind kind = RequestKind::kLeave;
    std::array<char, sizeof(RankActivity::last)> text{};
  } noted;
};

// Returns the name that ranks use among themselves: the one that was given, otherwise the turn's,
// once the request is submitted. Any thread.
inline const std::string& AgreedName(const Request& request) {
  const bool has_turn = request.unnamed && request.course.local != nullptr;
  return has_turn ? *request.course.local->name : request.name;  // turns are never forgotten
}

}  // namespace hvd::rt
