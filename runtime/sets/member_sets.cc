// SPDX-License-Identifier: Apache-2.0
// Process sets that only their members know. They agree by sends and receives on the global set:
// the first of them asks all the others for what none of them uses yet.
#include <algorithm>
#include <cstring>

#include "base/mutex.h"
#include "base/printable.h"
#include "base/stable_hash.h"
#include "runtime/sets/process_sets.h"

namespace hvd {
namespace {

// A message from one member to another; small enough for a notice.
struct MemberWord {
  enum Kind : int32_t { kHere, kFull, kTry, kYes, kNo, kAgreed, kFailed, kPlace, kGone };
  Kind kind = kHere;
  int32_t code = 0;      // of kFailed: absl::StatusCode
  int32_t channels = 0;  // of kTry
  int32_t id = 0;        // of kAgreed
  uint64_t place = 0;    // of kPlace
  char text[200] = {};   // of kFailed
};

// The same on all members.
int64_t TagOf(const std::vector<int>& ranks, std::string_view key) {
  StableHash hash;
  for (const int rank : ranks) hash.Add(static_cast<uint64_t>(rank));
  hash.Add(~uint64_t{0});  // no rank: what follows is the key
  return static_cast<int64_t>(hash.Add(key).value());
}

constexpr int32_t kFirstId = 1 << 30;
constexpr int kLedBits = 14;

}  // namespace

// One change as one of its members sees it.
class MemberAgreement {
 public:
  MemberAgreement(ProcessSets* sets, ProcessSet* set)
      : sets_(*sets), set_(*set), tag_(TagOf(set->ranks, set->key)) {}

  absl::Status Agree() { return set_.index == 0 ? Lead() : Follow(); }
  // Where the set's memory of this host is; the first of its members here takes it.
  absl::Status Place();
  // All members have come here.
  absl::Status Meet();

 private:
  absl::Status Exchange(RequestKind kind, int member, MemberWord* word) {
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
  absl::Status AbortIfLeft(int rank, const absl::Status& why) const;
  absl::Status Tell(int member, MemberWord word) {
    return Exchange(RequestKind::kSend, member, &word);
  }
  absl::StatusOr<MemberWord> Hear(int member) {
    MemberWord word;
    const absl::Status heard = Exchange(RequestKind::kReceive, member, &word);
    if (!heard.ok()) return heard;
    return word;
  }
  int size() const { return static_cast<int>(set_.ranks.size()); }
  absl::Status Lead();
  absl::Status Follow();
  absl::Status HearAll();
  absl::StatusOr<bool> Try(int channels);
  absl::Status TellFailed(const absl::Status& why, const std::vector<bool>& lost);
  absl::Status Full(int member) const {
    return absl::ResourceExhaustedError(
        "rank " + std::to_string(set_.ranks[static_cast<size_t>(member)]) + " is a member of " +
        std::to_string(kMaxMemberSets) +
        " process sets besides those of all ranks already; remove one first");
  }

  ProcessSets& sets_;
  ProcessSet& set_;
  const int64_t tag_;
  std::vector<bool> lost_;  // members that take no part any more
};

// The epoch lives, and so does this rank's place in it: the member has left while this rank waited
// for it. Others wait for this rank by now, and would take it for the one who is missing.
absl::Status MemberAgreement::AbortIfLeft(int rank, const absl::Status& why) const {
  EpochWorld& job = set_.global_engine->world();
  if (sets_.stopping_.load()) return why;
  // Another member may have found it first: all say the same.
  if (absl::Status ended = job.waiter().Check(); !ended.ok()) return ended;
  const std::string text =
      "rank " + std::to_string(rank) +
      " has left the job (shutdown) while other ranks wait for it" +
      (set_.key.empty() ? " to make or remove a process set" : " in " + ShownName(set_.key));
  return job.board().Abort({text.c_str(), rank});
}

// Tells all members but the lost ones, which have been told, or cannot be.
absl::Status MemberAgreement::TellFailed(const absl::Status& why, const std::vector<bool>& lost) {
  MemberWord word;
  word.kind = MemberWord::kFailed;
  word.code = static_cast<int32_t>(why.code());
  const size_t bytes = std::min(why.message().size(), sizeof(word.text) - 1);
  std::memcpy(word.text, why.message().data(), bytes);
  for (int member = 1; member < size(); ++member) {
    if (!lost[static_cast<size_t>(member)]) (void)Tell(member, word).ok();  // its own error then
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
  if (absl::Status here = HearAll(); !here.ok()) return TellFailed(here, lost_);
  for (int channels = kMaxProcessSets; channels < kMaxChannels; ++channels) {
    if (!sets_.ReserveChannels(channels)) continue;
    set_.channels = channels;
    const absl::StatusOr<bool> all = Try(channels);
    if (!all.ok()) return TellFailed(all.status(), lost_);
    if (*all) break;
    sets_.ReleaseChannels(&set_);
  }
  if (set_.channels == 0) {
    return TellFailed(absl::ResourceExhaustedError("members have no channel left in common"),
                      lost_);
  }
  const absl::StatusOr<int32_t> led = sets_.NextLed();
  if (!led.ok()) return TellFailed(led.status(), lost_);
  set_.id = kFirstId | set_.ranks[0] << kLedBits | *led;
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
    sets_.ReleaseChannels(&set_);
    const bool reserved = sets_.ReserveChannels(word->channels);
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

bool ProcessSets::ReserveChannels(int channels) {
  const MutexLock lock(&mutex_);
  return channels_.insert(channels).second;
}

void ProcessSets::ReleaseChannels(ProcessSet* set) {
  const MutexLock lock(&mutex_);
  channels_.erase(std::exchange(set->channels, 0));
}

absl::StatusOr<int32_t> ProcessSets::NextLed() {
  const MutexLock lock(&mutex_);
  if (members_led_ + 1 < 1 << kLedBits) return ++members_led_;
  return absl::ResourceExhaustedError(
      "this rank has led as many process sets as have numbers; shut down and init again");
}

// Reserves what is this rank's alone; the set's region is 0 when there is none left.
absl::StatusOr<std::shared_ptr<ProcessSet>> ProcessSets::ReserveMembers(const ProcessSet& global,
                                                                        std::vector<int> ranks,
                                                                        std::string_view key,
                                                                        int32_t* id) {
  auto set = std::make_shared<ProcessSet>();
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), global.index);
  if (at == ranks.end() || *at != global.index) {
    return absl::InvalidArgumentError("ranks: rank " + std::to_string(global.index) +
                                      " is not among them; only members make such a set");
  }
  set->index = static_cast<int>(at - ranks.begin());
  set->ranks = std::move(ranks);
  set->key = key;
  set->global_engine = global.engine;
  const MutexLock lock(&mutex_);
  for (const auto& [number, other] : sets_) {
    if (other->channels == 0 || other->ranks != set->ranks || other->key != key) continue;
    *id = number;
    return absl::AlreadyExistsError(Describe(*other) + " has this key already; use that one");
  }
  if (!member_keys_.emplace(set->ranks, set->key).second) {
    return absl::AlreadyExistsError("another thread makes or removes the set of this key");
  }
  for (int region = kMaxProcessSets; region < kWatchedSets && set->region == 0; ++region) {
    if (member_regions_.insert(region).second) set->region = region;
  }
  return set;
}

void ProcessSets::Release(const ProcessSet& set) {
  const MutexLock lock(&mutex_);
  member_keys_.erase({set.ranks, set.key});
  member_regions_.erase(set.region);
  channels_.erase(set.channels);
}

absl::Status ProcessSets::AddMembers(absl::Span<const int32_t> ranks, std::string_view key,
                                     int32_t* id) {
  const ReaderLock members(&members_mutex_);
  const absl::StatusOr<SetPointer> global = Global();
  if (!global.ok()) return global.status();
  auto sorted = CheckRanks(ranks, static_cast<int>((*global)->ranks.size()));
  if (!sorted.ok()) return sorted.status();
  auto reserved = ReserveMembers(**global, *std::move(sorted), key, id);
  if (!reserved.ok()) return reserved.status();
  const std::shared_ptr<ProcessSet> set = *std::move(reserved);
  EpochWorld& job = set->global_engine->world();
  if (set->region != 0) {
    set->counted_before.Add(WatchOf(job.page(), job.place().local_rank).metrics[set->region]);
  }
  MemberAgreement agreement(this, set.get());
  absl::Status made = agreement.Agree();
  if (made.ok()) made = agreement.Place();
  if (made.ok()) made = Make(set.get());
  // Once they have agreed the others count on this rank.
  if (!made.ok() && set->id != HVD_GLOBAL_PROCESS_SET) {
    made = job.waiter().EndEpoch("rank " + std::to_string(job.rank()) + " cannot make " +
                                 Describe(*set) + ": " + std::string(made.message()));
  }
  if (!made.ok()) {
    Release(*set);
    return made;
  }
  *id = set->id;
  const MutexLock lock(&mutex_);
  sets_.emplace(set->id, set);
  member_keys_.erase({set->ranks, set->key});
  return absl::OkStatus();
}

// Its members leave it first; once all have come here, nobody looks at its memory any more.
absl::Status ProcessSets::RemoveMembers(const SetPointer& set) {
  const ReaderLock members(&members_mutex_);
  {
    const MutexLock lock(&mutex_);
    if (sets_.erase(set->id) == 0) return absl::InvalidArgumentError("it is removed already");
    member_keys_.emplace(set->ranks, set->key);
  }
  set->engine->Shutdown();
  ProcessSet mine = *set;
  const absl::Status met = MemberAgreement(this, &mine).Meet();
  if (met.ok()) set->engine->world().GiveMemoryBack();
  Release(*set);
  return met;
}

}  // namespace hvd
