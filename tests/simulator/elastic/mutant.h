// SPDX-License-Identifier: Apache-2.0
// What is planted in the protocol, at the seams of the simulation, so that a test can see that it
// is found. Production code knows nothing of it.
#pragma once

#include <array>

namespace hvd::elastic_simulator {

enum class Mutant {
  kNone,
  kNoAgreement,       // a commit returns when this rank has written its part
  kLocalEpochs,       // a host counts the epochs itself
  kEarlyQuiet,        // a host says quiet, and that its members stand, when it hears of the abort
  kOwnSync,           // a survivor decides by itself that nobody needs a state
  kHeaderFirst,       // a rank says that its bytes are written before they are
  kLostIsGone,        // a member that is ended is taken for gone while its process lives
  kMostCommit,        // the next epoch resumes at the newest commit of any host
  kOwnChange,         // each rank believes its own host on a change
  kStaleChange,       // a host's ranks go on being told of a change in the next epoch
  kVoidForgotten,     // a host keeps commits that it is told to forget
  kBeyondForgotten,   // a host keeps commits beyond the one that is resumed at
  kDeathUntold,       // hvdrun is not told of a member that dies before its epoch starts
  kMemberAgain,       // a new member gets the number of a dead one
  kReadsAnyway,       // a rank without the state looks for it in its host's files
  kAbortUntold,       // other hosts are not told that the epoch is over
  kNoWayBack,         // after a break the survivors go on from where they are
  kFramesOfAnyEpoch,  // what comes from another host is taken whatever epoch it is of
  kBegunCounts,       // a host says that a commit is complete which one of its ranks has written
  kSyncCounts,        // what a sync commits passes for a step of the program's
  kAllsWell,          // hosts say of all who have ended that their code was 0
  kCutUntold,         // hvdrun is not told between which hosts nothing passes
  kCount
};

const char* NameOf(Mutant mutant);

}  // namespace hvd::elastic_simulator
