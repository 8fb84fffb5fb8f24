// Which names have a direct number: those used lately. All ranks must say the same of each use; how
// they come to that is in direct.h.
#include <algorithm>

#include "runtime/engine/direct/arena_offsets.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/execution/fusion.h"
#include "runtime/engine/request/tensor_bytes.h"

namespace hvd {
namespace {

// Submissions for which a name may rest, at least; so names do not come and go in turn.
constexpr uint64_t kLeastRest = 256;
// Names that one without a number makes room for.
constexpr size_t kAtOnce = 64;

}  // namespace

void Engine::FindNumberLocked(LocalName* name) {
  Direct& direct = *world_->direct();
  if (name->ticket.number != 0) return;
  if (name->turn != 0) {
    name->ticket = {Direct::NumberOfTurn(name->turn), rounds_ - 1, 0};  // not used in this round
    return;
  }
  numbered_.push_back(name);  // first: there may be no memory
  const uint32_t number = direct.Number(*name->name);
  if (number == 0) return numbered_.pop_back();
  name->ticket = direct.Latest(number, rounds_);
}

// Of one that goes by the board now.
bool Engine::WantsNumber(const LocalName& name) const {
  const Request& request = *name.pending;
  const Signature& s = request.signature;
  const bool can_have = world_->direct() != nullptr && name.ticket.number == 0 && !request.unnamed;
  const bool sums = s.kind == RequestKind::kAllreduce && ReducesInPlace(s);
  if (!can_have || joining_ != nullptr || leaving_) return false;
  if (!sums && !Direct::MayGoDirectly(s)) return false;
  return TensorBytes(s) <= Direct::kStageBytes || InputInArena(request, world_->arenas()) >= 0;
}

// The log says what became of it, on every rank.
void Engine::TakeNumberLocked(const LogEntry& entry, LocalName* name) {
  if (entry.direct_number != 0 && name->ticket.number == 0) {
    name->ticket = {entry.direct_number, rounds_ - 1, 0};
    numbered_.push_back(name);
    // Its entry is there: it has just been executed. Every wait says how else the epoch ended.
    (void)world_->board().Keep(*name->name).ok();
  } else if (name->wants_number && entry.error.empty()) {
    GiveUpIdleLocked(name->distance);
  }
  name->wants_number = false;
}

// For a name that comes again every `distance` submissions: those that rest for twice as long. (So
// where more names than there are numbers come in turn, those that have one keep it.) All ranks
// see the same use, and mostly give up the same.
void Engine::GiveUpIdleLocked(uint64_t distance) {
  const uint64_t rest = std::max(2 * distance, kLeastRest);
  if (submissions_ - oldest_use_ <= rest) return;
  oldest_use_ = submissions_;
  size_t given_up = 0;
  const auto goes = [&](LocalName* name) {
    const bool rests = name->pending == nullptr && submissions_ - name->last_use > rest;
    if (!rests || given_up == kAtOnce) {
      oldest_use_ = std::min(oldest_use_, name->last_use);
      return false;
    }
    ++given_up;
    const uint32_t number = name->ticket.number;
    name->ticket.number = 0;
    name->prepared = false;  // asks again before its next use
    if (world_->direct()->GiveUp(number)) world_->board().Release(*name->name);
    return true;
  };
  std::erase_if(numbered_, goes);
}

}  // namespace hvd
