// SPDX-License-Identifier: Apache-2.0
// Which tensors wait on this host, since when, and whether it is time to say so. Pure. The ranks'
// answers come every now and then; what is in one answer and in the next has waited in between.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/loop.h"
#include "proto/page/pending_list.h"

namespace hvd::daemon {

struct StallPolicy {
  double warn_s = 0;   // 0: nobody looks
  double abort_s = 0;  // 0: never
};

// One rank's answer for one process set.
struct RankPending {
  int local_rank = 0;
  PendingList list;
};

// The answers of all ranks of this host to one question.
struct PendingAnswers {
  std::vector<RankPending> given;
  std::vector<int> late;  // local ranks that have something pending and have not said all of it
};

// A tensor that some ranks of this host have submitted.
struct WaitingTensor {
  int set = 0;
  std::string name;
  std::string what;
  double waited_s = 0;           // the longest of them
  std::vector<int> local_ranks;  // that have submitted it
  std::vector<int64_t> members;  // global ranks that must; empty: all
  bool moving = false;           // PendingTensor's, of all of them
};

class StallWatch {
 public:
  explicit StallWatch(const StallPolicy& policy) : policy_(policy) {}

  // How long to leave between two questions: a quarter of the nearer limit.
  Clock::duration period() const;
  // Returns the waiting tensors, longest first. A tensor that a late rank named before goes on
  // waiting, and is not among them.
  std::vector<WaitingTensor> Take(const PendingAnswers& answers, TimePoint now);
  // True when one of these waits is to be told: it has lasted for warn_s, a multiple of that, or
  // abort_s since the last call.
  bool Due(const std::vector<double>& waits_s, TimePoint now);

 private:
  using Key = std::tuple<int, int, uint64_t>;  // local rank, set, sequence
  using Since = std::map<Key, TimePoint>;

  // Adds to `since` what is known of process sets for which a late rank has given no answer.
  void KeepLate(const PendingAnswers& answers, Since* since) const;

  const StallPolicy policy_;
  Since since_;
  TimePoint looked_;
};

}  // namespace hvd::daemon
