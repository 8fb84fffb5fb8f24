// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/direct/direct_way.h"

#include <algorithm>

#include "runtime/engine/direct/direct_execute.h"
#include "runtime/engine/execution/fusion.h"
#include "runtime/engine/request/tensor_bytes.h"
#include "runtime/engine/request/tensor_places.h"

namespace hvd::rt {
namespace {

// Looks of EndAtOnce: about half a microsecond.
constexpr int kLooksAtOnce = 200;

// Some rank has it where the others cannot reach it, and it is too large for a stage: so it will be
// the next time, most likely, and a direct mark would only say so.
bool IsLargeAndPrivate(const LogEntry& entry) {
  const Signature& s = entry.signature;
  if (!entry.error.empty() || s.is_group() || !entry.host_buffers.empty()) return false;
  if (s.kind == RequestKind::kBroadcast) return TensorBytes(s) > kMostDirectBytes;
  return s.kind == RequestKind::kAllreduce && TensorBytes(s) > Direct::kStageBytes;
}

}  // namespace

DirectWay::DirectWay(const DirectParts& parts)
    : parts_(parts),
      in_place_(parts.direct, parts.places, parts.on_host, parts.waiter),
      numbered_(parts.direct, parts.board) {}

// All ranks must say the same of each use; how they come to that is in numbers.h.
void DirectWay::FindNumber(LocalName* name) {
  if (name->direct.ticket.number != 0) return;
  if (name->turn != 0) {
    name->direct.ticket = {DirectNumbers::OfTurn(name->turn), round_ - 1,
                           0};  // not used in this one
    return;
  }
  numbered_.Find(name, round_);
}

bool DirectWay::WantsNumber(const LocalName& name) const {
  const Request& request = *name.pending;
  const Signature& s = request.signature;
  if (!exists() || name.direct.ticket.number != 0 || request.unnamed) return false;
  const bool sums = s.kind == RequestKind::kAllreduce && ReducesInPlace(s);
  if (!sums && !MayGoDirectly(s)) return false;
  return TensorBytes(s) <= Direct::kStageBytes ||
         InputInArena(request, parts_.places->arenas()) >= 0;
}

void DirectWay::TakeNumber(const LogEntry& entry, LocalName* name, uint64_t submissions) {
  // A turn's next use is another call.
  if (name->direct.ticket.number != 0 && name->turn == 0) {
    parts_.direct->numbers().SetByBoard(name->direct.ticket.number, round_,
                                        IsLargeAndPrivate(entry));
  }
  if (entry.direct_number != 0 && name->direct.ticket.number == 0) {
    name->direct.ticket = {entry.direct_number, round_ - 1, 0};
    numbered_.Add(name);
  } else if (name->board.wants_number && entry.error.empty()) {
    numbered_.GiveUpIdle(name->distance, submissions);
  }
}

// A rank that cannot go directly says so there all the same: others may wait for its mark.
bool DirectWay::Mark(LocalName* name) {
  Direct& direct = *parts_.direct;
  const Request& request = *name->pending;
  LocalName::Directly& mine = name->direct;
  if (!IsUsers(request.signature.kind) || mine.ticket.number == 0) return false;
  if (name->turn == 0 && direct.numbers().IsByBoard(mine.ticket.number, round_)) return false;
  if (mine.ticket.round != round_) {
    mine.ticket.round = round_;
    mine.ticket.count = 0;
  } else {
    ++mine.ticket.count;
  }
  mine.word = DirectWord(request, direct.size());
  mine.in_place = mine.staged = mine.worked = false;
  if (mine.word == kThroughBoard) in_place_.Mark(name);
  if (!mine.in_place && mine.word != kThroughBoard) {
    WriteDirect(request, direct, direct.Room(mine.ticket, mine.word));
  }
  direct.Publish(mine.ticket, mine.word);
  if (mine.word == kThroughBoard) return false;
  watch_.Add(name);
  return true;
}

void DirectWay::BeginJoin(uint32_t turns) {
  if (exists()) parts_.direct->BeginRound(round_ + 1, turns);
}

void DirectWay::Leave() {
  if (exists()) parts_.direct->Leave(round_ + 1);
}

Direct::Seen DirectWay::LookAt(const LocalName& name) const {
  const Direct& direct = *parts_.direct;
  if (!name.direct.worked) return direct.Look(name.direct.ticket, name.direct.word);
  return direct.AllDone(name.direct.ticket) ? Direct::Seen::kAllSame : Direct::Seen::kNotYet;
}

bool DirectWay::IsReady() const {
  if (watch_.has_new()) return true;
  for (const LocalName* name : watch_.watched()) {
    if (LookAt(*name) != Direct::Seen::kNotYet) return true;
  }
  return false;
}

DirectWay::Outcome DirectWay::Step() {
  for (size_t i = 0; i < watch_.watched().size(); ++i) {
    LocalName* name = watch_.watched()[i];
    const Direct::Seen seen = LookAt(*name);
    if (seen == Direct::Seen::kNotYet) continue;
    const bool all_same = seen == Direct::Seen::kAllSame;
    if (all_same && name->direct.in_place && !name->direct.worked) return WorkInPlace(name);
    watch_.Remove(i);
    if (!all_same) return {Outcome::Kind::kFellBack, name};
    if (!name->direct.in_place) return Run(name);
    FinishInPlace(name);
    return {Outcome::Kind::kFinished, name};
  }
  return {};
}

DirectWay::Outcome DirectWay::Run(LocalName* name) {
  Request* request = name->pending;
  const int64_t begin_ns = parts_.notes->Stamp();
  fault_ = ExecuteDirect(*parts_.direct, name->direct.ticket, request);
  if (!fault_.ok()) return {Outcome::Kind::kEpochEnds, name};
  parts_.direct->OwnNext(name->direct.ticket, name->direct.word);
  parts_.notes->runs().RanDirectly(*request, begin_ns);
  return {Outcome::Kind::kFinished, name};
}

// The others see when it is done.
DirectWay::Outcome DirectWay::WorkInPlace(LocalName* name) {
  parts_.notes->BeginDirect(name);
  fault_ = in_place_.Work(*name);
  parts_.notes->EndDirect();
  if (!fault_.ok()) return {Outcome::Kind::kEpochEnds, name};
  name->direct.worked = true;
  parts_.direct->PublishDone(name->direct.ticket);
  parts_.waiter->Ring();
  return {Outcome::Kind::kWorked, name};
}

void DirectWay::FinishInPlace(LocalName* name) {
  in_place_.Collect(*name);
  parts_.direct->OwnNext(name->direct.ticket, name->direct.word);
  parts_.notes->runs().RanDirectly(*name->pending, name->direct.begin_ns);
}

bool DirectWay::MayEndAtOnce(const Request& request) const {
  if (!request.course.alone) return false;
  const LocalName* name = watch_.only_new();
  return name != nullptr && !name->direct.in_place;
}

DirectWay::Outcome DirectWay::EndAtOnce() {
  LocalName* name = watch_.only_new();
  int looks = std::min(kLooksAtOnce, parts_.waiter->policy().spins);
  Direct::Seen seen = LookAt(*name);
  for (; seen == Direct::Seen::kNotYet && looks > 0; --looks) {
    parts_.notes->runs().Waits();
    seen = LookAt(*name);
  }
  if (seen != Direct::Seen::kAllSame) return {};
  watch_.ForgetNew();
  return Run(name);
}

}  // namespace hvd::rt
