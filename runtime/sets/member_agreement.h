// SPDX-License-Identifier: Apache-2.0
// One change of a set that only its members know, as one of them sees it: they agree by sends and
// receives on the global set. The first of them asks all the others for what none of them uses yet.
//
// Threads: one at a time; changes of different sets go beside one another.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/sets/set_table.h"

namespace hvd::rt {

// A message from one member to another.
struct MemberWord;

class MemberAgreement {
 public:
  // What they agree on is taken from `table`. `stopping`: this rank leaves all its sets.
  MemberAgreement(SetTable* table, const std::atomic<bool>* stopping, ProcessSet* set);
  MemberAgreement(const MemberAgreement&) = delete;
  MemberAgreement& operator=(const MemberAgreement&) = delete;

  // Gives the set its number and channels.
  absl::Status Agree() { return set_.index == 0 ? Lead() : Follow(); }
  // Where the set's memory of this host is; the first of its members here takes it.
  absl::Status Place();
  // All members have come here.
  absl::Status Meet();

 private:
  absl::Status Exchange(RequestKind kind, int member, MemberWord* word);
  absl::Status AbortIfLeft(int rank, const absl::Status& why) const;
  absl::Status Tell(int member, MemberWord word);
  absl::StatusOr<MemberWord> Hear(int member);
  int size() const { return static_cast<int>(set_.ranks.size()); }
  absl::Status Lead();
  absl::Status Follow();
  absl::Status HearAll();
  absl::StatusOr<bool> Try(int channels);
  absl::Status TellAgreed();
  absl::Status TellFailed(const absl::Status& why);
  absl::Status Full(int member) const;

  SetTable& table_;
  const std::atomic<bool>& stopping_;
  ProcessSet& set_;
  const int64_t tag_;       // of all messages; the same on all members
  std::vector<bool> lost_;  // members that take no part any more
};

}  // namespace hvd::rt
