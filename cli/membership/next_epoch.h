// SPDX-License-Identifier: Apache-2.0
// The next epoch as it is proposed: its order of ranks, where it resumes, and who lacks the state.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hvd/v1/link_a.pb.h"
#include "proto/page/state_box.h"

namespace hvd::cli {

// A member for the next epoch.
struct Candidate {
  uint64_t member = 0;
  int slot = 0;
  int share = 0;
  int last_rank = -1;  // in the last epoch that started; -1: it was not in it
};

struct CandidateHost {
  int host = 0;
  std::string name;
  KeptCommits kept = {};  // what it has complete since the last epoch
  std::vector<Candidate> members;
};

struct NextEpoch {
  uint64_t number = 0;
  // The last epoch that started broke: who has a state goes back to a commit.
  bool rolls_back = false;
  // Complete on all hosts that have a state, and the newest: two slots hold both.
  uint64_t resume_commit = 0;
  std::vector<CandidateHost> hosts;
};

// The commit that all of these hosts can go back to, of the newest that each has complete. One that
// is behind by more than one has no state. 0: there is none.
uint64_t ResumeCommit(const std::vector<uint64_t>& newest);

// Whether anybody there has the state that all are to go on from.
bool HasState(const NextEpoch& next);

// Hosts without a member are left out.
v1::EpochPropose ProposeNext(NextEpoch next);

}  // namespace hvd::cli
