// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/member_agreement.h"

#include <algorithm>
#include <cstring>

#include "base/printable.h"
#include "base/stable_hash.h"

namespace hvd::rt {

// Small enough for a notice.
struct MemberWord {
  enum Kind : int32_t { kHere, kFull, kTry, kYes, kNo, kAgreed, kFailed, kPlace, kGone };
  Kind kind = kHere;
  int32_t code = 0;      // of kFailed: absl::StatusCode
  int32_t channels = 0;  // of kTry
  int32_t id = 0;        // of kAgreed
  uint64_t place = 0;    // of kPlace
  char text[200] = {};   // of kFailed
};

namespace {

// The same on all members.
int64_t TagOf(const std::vector<int>& ranks, std::string_view key) {
  StableHash hash;
  for (const int rank : ranks) hash.Add(static_cast<uint64_t>(rank));
  hash.Add(~uint64_t{0});  // no rank: what follows is the key
  return static_cast<int64_t>(hash.Add(key).value());
}

}  // namespace

MemberAgreement::MemberAgreement(SetTable* table, const std::atomic<bool>* stopping,
                                 ProcessSet* set)
    : table_(*table), stopping_(*stopping), set_(*set), tag_(TagOf(set->ranks, set->key)) {}

absl::Status MemberAgreement::Exchange(RequestKind kind, int member, MemberWord* word) {
  Request request;
  request.signature.kind = kind;
  request.signature.dtype = HVD_UINT8;
  request.signature.ndim = 1;
  request.signature.shape[0] = sizeof(MemberWord);
  request.peer = set_.ranks[static_cast<size_t>(member)];
  request.tag = tag_;
  request.own_pair = true;
  request.buffers.input = request.buffers.output = word;
  absl::Status run = set_.global_engine->Run(&request);
  return absl::IsAborted(run) ? AbortIfLeft(request.peer, run) : run;
}

absl::Status MemberAgreement::Tell(int member, MemberWord word) {
  return Exchange(RequestKind::kSend, member, &word);
}

absl::StatusOr<MemberWord> MemberAgreement::Hear(int member) {
  MemberWord word;
  const absl::Status heard = Exchange(RequestKind::kReceive, member, &word);
  if (!heard.ok()) return heard;
  return word;
}

absl::Status MemberAgreement::Full(int member) const {
  return absl::ResourceExhaustedError(
      "rank " + std::to_string(set_.ranks[static_cast<size_t>(member)]) + " is a member of " +
      std::to_string(kMaxMemberSets) +
      " process sets besides those of all ranks already; remove one first");
}

// The epoch lives, and so does this rank's place in it: the member has left while this rank waited
// for it. Others wait for this rank by now, and would take it for the one who is missing.
absl::Status MemberAgreement::AbortIfLeft(int rank, const absl::Status& why) const {
  EpochWorld& job = set_.global_engine->world();
  if (stopping_.load()) return why;
  // Another member may have found it first: all say the same.
  if (absl::Status ended = job.waiter().Check(); !ended.ok()) return ended;
  const std::string text =
      "rank " + std::to_string(rank) +
      " has left the job (shutdown) while other ranks wait for it" +
      (set_.key.empty() ? " to make or remove a process set" : " in " + ShownName(set_.key));
  return job.board().Abort({text.c_str(), rank});
}

// Tells all members but the lost ones, which have been told, or cannot be.
absl::Status MemberAgreement::TellFailed(const absl::Status& why) {
  MemberWord word;
  word.kind = MemberWord::kFailed;
  word.code = static_cast<int32_t>(why.code());
  const size_t bytes = std::min(why.message().size(), sizeof(word.text) - 1);
  std::memcpy(word.text, why.message().data(), bytes);
  for (int member = 1; member < size(); ++member) {
    if (!lost_[static_cast<size_t>(member)]) (void)Tell(member, word).ok();  // its own error then
  }
  return why;
}

// All are heard, also when one has failed: so each pair has exchanged as much.
absl::Status MemberAgreement::HearAll() {
  absl::Status status = set_.region == 0 ? Full(0) : absl::OkStatus();
  for (int member = 1; member < size(); ++member) {
    const absl::StatusOr<MemberWord> heard = Hear(member);
    lost_[static_cast<size_t>(member)] = !heard.ok();
    if (status.ok()) status = heard.status();
    if (status.ok() && heard->kind == MemberWord::kFull) status = Full(member);
  }
  return status;
}

absl::StatusOr<bool> MemberAgreement::Try(int channels) {
  bool all = true;
  absl::Status status;
  MemberWord ask;
  ask.kind = MemberWord::kTry;
  ask.channels = channels;
  for (int member = 1; member < size(); ++member) {
    const absl::Status told = Tell(member, ask);
    lost_[static_cast<size_t>(member)] = !told.ok();
    if (status.ok()) status = told;
  }
  for (int member = 1; member < size(); ++member) {
    if (lost_[static_cast<size_t>(member)]) continue;
    const absl::StatusOr<MemberWord> heard = Hear(member);
    lost_[static_cast<size_t>(member)] = !heard.ok();
    if (status.ok()) status = heard.status();
    all = all && heard.ok() && heard->kind == MemberWord::kYes;
  }
  if (!status.ok()) return status;
  return all;
}

absl::Status MemberAgreement::Lead() {
  lost_.assign(static_cast<size_t>(size()), false);
  if (absl::Status here = HearAll(); !here.ok()) return TellFailed(here);
  for (int channels = kMaxProcessSets; channels < kMaxChannels; ++channels) {
    if (!table_.ReserveChannels(channels)) continue;
    set_.channels = channels;
    const absl::StatusOr<bool> all = Try(channels);
    if (!all.ok()) return TellFailed(all.status());
    if (*all) break;
    table_.ReleaseChannels(&set_);
  }
  if (set_.channels == 0) {
    return TellFailed(absl::ResourceExhaustedError("members have no channel left in common"));
  }
  const absl::StatusOr<int32_t> led = table_.NextLed();
  if (!led.ok()) return TellFailed(led.status());
  set_.id = MemberNumbers::IdOf(set_.ranks[0], *led);
  return TellAgreed();
}

absl::Status MemberAgreement::TellAgreed() {
  MemberWord agreed;
  agreed.kind = MemberWord::kAgreed;
  agreed.id = set_.id;
  absl::Status status;
  for (int member = 1; member < size(); ++member) {
    if (absl::Status told = Tell(member, agreed); status.ok()) status = told;
  }
  return status;
}

absl::Status MemberAgreement::Follow() {
  MemberWord here;
  if (set_.region == 0) here.kind = MemberWord::kFull;
  if (absl::Status told = Tell(0, here); !told.ok()) return told;
  for (;;) {
    const absl::StatusOr<MemberWord> word = Hear(0);
    if (!word.ok()) return word.status();
    if (word->kind == MemberWord::kFailed) {
      return absl::Status(static_cast<absl::StatusCode>(word->code), word->text);
    }
    if (word->kind == MemberWord::kAgreed) {
      set_.id = word->id;
      return absl::OkStatus();
    }
    table_.ReleaseChannels(&set_);
    const bool reserved = table_.ReserveChannels(word->channels);
    if (reserved) set_.channels = word->channels;
    MemberWord answer;
    answer.kind = reserved ? MemberWord::kYes : MemberWord::kNo;
    if (absl::Status told = Tell(0, answer); !told.ok()) return told;
  }
}

absl::Status MemberAgreement::Place() {
  EpochWorld& job = set_.global_engine->world();
  const Topology& topology = job.topology();
  std::vector<int> here;  // members of this host
  for (int member = 0; member < size(); ++member) {
    const int host = topology.place(set_.ranks[static_cast<size_t>(member)]).host;
    if (host == job.place().host) here.push_back(member);
  }
  if (here.front() != set_.index) {
    const absl::StatusOr<MemberWord> word = Hear(here.front());
    if (word.ok()) set_.memory_at = word->place;
    return word.status();
  }
  const absl::StatusOr<uint64_t> at = job.TakeMemoryForSet(set_.ranks);
  if (!at.ok()) return at.status();
  set_.memory_at = *at;
  MemberWord word;
  word.kind = MemberWord::kPlace;
  word.place = *at;
  for (const int member : here) {
    if (member == set_.index) continue;
    if (absl::Status told = Tell(member, word); !told.ok()) return told;
  }
  return absl::OkStatus();
}

absl::Status MemberAgreement::Meet() {
  MemberWord gone;
  gone.kind = MemberWord::kGone;
  if (set_.index != 0) {
    if (absl::Status told = Tell(0, gone); !told.ok()) return told;
    return Hear(0).status();
  }
  absl::Status status;
  for (int member = 1; member < size(); ++member) {
    if (absl::Status heard = Hear(member).status(); status.ok()) status = heard;
  }
  for (int member = 1; member < size(); ++member) {
    if (absl::Status told = Tell(member, gone); status.ok()) status = told;
  }
  return status;
}

}  // namespace hvd::rt
