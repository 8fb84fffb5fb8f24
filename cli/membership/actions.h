// SPDX-License-Identifier: Apache-2.0
// What Membership is told, and what it wants done. Pure data.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hvd/v1/link_a.pb.h"
#include "proto/page/state_box.h"

namespace hvd::cli {

// A host that may work for the job, as it is listed now.
struct BookHost {
  std::string name;
  int shares = 1;  // ranks that it takes
};

// How a member ended.
struct MemberEnd {
  int code = 0;  // when signal is 0
  int signal = 0;
  bool out_of_memory = false;
  bool own = true;        // no abort and no stop had reached it before
  bool known = true;      // how it ended: without that, nobody can say whose doing it was
  uint64_t epoch = 0;     // the newest that it had joined
  bool left = false;      // that one, before it died
  bool lives = false;     // its process does, without a link: its share is free with its slot
  KeptCommits kept = {};  // what its host has complete
  std::string what = {};  // "rank 3 on host1 was killed by signal 9 (Killed)"
  bool clean() const { return code == 0 && signal == 0; }
};

// Why membership ends the job.
enum class MembershipEnd {
  kTooFew,      // ranks, for longer than --elastic-timeout
  kStateLost,   // nobody is left who has what was committed
  kResetLimit,  // the next epoch would be one too many
  kProgramBug,  // the program fails by itself, wherever it runs
};

struct MembershipAction {
  enum Kind {
    kReach,     // bring the host named `text` to its hello, as `host`
    kSpawn,     // send `spawn` to `host`
    kPropose,   // send `propose` to all of its hosts
    kAnnounce,  // tell the hosts of `epoch` that its members are to change: `text`
    kAbort,     // end `epoch` on all of its hosts but `host`, for `text`
    kRetire,    // end `member` (on `host`), for `text`; `removed`: it is refused the next epoch
    kStopHost,  // nobody works there any more
    kEnd,       // the job ends, for `end`; `member` is to blame (0: none)
    kSay,       // show `text` to the person
  } kind;
  int host = -1;
  std::string text = {};
  uint64_t member = 0;
  uint64_t epoch = 0;
  bool removed = false;
  MembershipEnd end = MembershipEnd::kTooFew;
  v1::SpawnSlots spawn = {};
  v1::EpochPropose propose = {};
};

// An epoch that has started.
struct EpochRecord {
  uint64_t number = 0;
  int ranks = 0;
  int hosts = 0;
  std::string cause;    // why it began; empty: the first
  uint64_t commit = 0;  // where it resumed; 0: at the beginning
  bool rolled_back = false;
  double seconds = 0;  // from what ended the one before to its start
};

}  // namespace hvd::cli
