// SPDX-License-Identifier: Apache-2.0
// What is to be done for this host's epochs, as the HostRendezvous decides it. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hvd::daemon {

struct EpochAction {
  enum class Kind {
    kCreate,     // make the epoch's memory
    kStart,      // tell `slot`: here it is
    kStands,     // up: `slot` waits for an epoch that comes after `epoch`
    kWithdrawn,  // up: `slot` has taken its join back
    kTake,       // `bytes` of the memory are taken by all ranks of the host
    kAddresses,  // up: all addresses of the host (LocalEpoch::addresses)
    kTable,      // tell `slot` the table that came
    kReady,      // up: all of the host are ready
    kGo,         // tell `slot`
    kLeft,       // up: `slot` has left
    kAbort,      // mark the memory aborted with `text`
    kRefuse,     // tell `slot`, which waits for an answer, `text`
    kDispose,    // nobody uses the memory any more
    kQuiet,      // up, elastic: no member of this host is in the epoch any more, nor will be
    kRemove,     // tell `slot`, which waits for an answer, that it is in no later epoch: `text`
  };
  Kind kind;
  uint64_t epoch = 0;
  int slot = -1;
  uint64_t bytes = 0;
  std::string text = {};
};
using EpochActions = std::vector<EpochAction>;

}  // namespace hvd::daemon
