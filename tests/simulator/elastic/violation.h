// SPDX-License-Identifier: Apache-2.0
// What a run has found wrong. The first counts.
#pragma once

#include <string>

namespace hvd::elastic_simulator {

enum class Violation {
  kNone,
  kWords,       // members of an epoch were told different things of it
  kTwoEpochs,   // one completes collectives although a newer one has begun
  kLateWrite,   // a member of an older epoch writes into what a newer one uses
  kLostCommit,  // a commit had returned somewhere, and a host that held it lives
  kContent,  // ranks have different states after a sync, or a restored one is not what was written
  kNoState,  // a rank is told to go back to a commit that its host does not have
  kMember,   // a number is used twice, or a slot or share is given to two
  kPlaces,   // survivors change their places or order, or rank 0 lacks a state that others have
  kUpdated,  // some ranks of an epoch are told of a change at a commit, others not
  kLostSteps,  // a planned change went back
  kLimits,     // a budget, a cooldown or the reset limit does not hold
  kStuck,      // nobody gets on, and nobody would ever end it
  kVerdict,    // the job ends for what has not happened
};

const char* NameOf(Violation violation);

}  // namespace hvd::elastic_simulator
