// How a request enters: directly, or on the board.
#include <new>

#include "runtime/engine/direct/arena_offsets.h"
#include "runtime/engine/direct/direct_execute.h"
#include "runtime/engine/engine.h"

namespace hvd {
namespace {

// Only these are ever the same call for users and can have a name of theirs.
bool IsUsers(RequestKind kind) {
  return kind != RequestKind::kLeave && kind != RequestKind::kJoin &&
         kind != RequestKind::kAddProcessSet && kind != RequestKind::kRemoveProcessSet;
}

}  // namespace

// Once a name, and again after its number was given up. What this rank has marked directly others
// count on, and so they do on a turn that it has taken: when it must go to the board, now or later,
// there must be room.
absl::Status Engine::PrepareLocked(LocalName* name, const Request& request) {
  if (!IsUsers(request.signature.kind)) return absl::OkStatus();
  // Groups never go directly; and where a name is only theirs, nobody else's call can meet it.
  const bool only_groups = request.unnamed && !request.takes_turn();
  if (world_->direct() != nullptr && !only_groups) FindNumberLocked(name);
  if (name->ticket.number != 0 || request.unnamed) {
    if (absl::Status kept = world_->board().Keep(*name->name); !kept.ok()) return kept;
  }
  name->prepared = true;
  return absl::OkStatus();
}

absl::Status Engine::MarkLocked(LocalName* name) {
  if (name->pending->signature.kind == RequestKind::kJoin) return JoinLocked(name);
  // A rank that has joined or left has told the others that it is away: they would not all see its
  // mark.
  const bool away = joining_ != nullptr || leaving_;
  name->direct = world_->direct() != nullptr && !away && MarkDirectly(name);
  return name->direct ? absl::OkStatus() : MarkOnBoard(name);
}

// A rank that cannot go directly says so there all the same: others may wait for its mark.
bool Engine::MarkDirectly(LocalName* name) {
  Direct& direct = *world_->direct();
  const Request& request = *name->pending;
  if (!IsUsers(request.signature.kind)) return false;
  if (name->ticket.number == 0) return false;
  if (name->ticket.round != rounds_) {
    name->ticket.round = rounds_;
    name->ticket.count = 0;
  } else {
    ++name->ticket.count;
  }
  name->word = DirectWord(request, direct.size());
  name->in_place = name->staged = name->worked = false;
  if (name->word == Direct::kThroughBoard) MarkInPlace(name);
  if (!name->in_place && name->word != Direct::kThroughBoard) {
    WriteDirect(request, direct, direct.Room(name->ticket, name->word));
  }
  direct.Publish(name->ticket, name->word);
  if (name->word == Direct::kThroughBoard) return false;
  marked_.push_back(name);
  marked_count_.store(marked_.size(), std::memory_order_release);
  return true;
}

// A larger tensor goes directly when the others can reach it.
void Engine::MarkInPlace(LocalName* name) {
  switch (name->pending->signature.kind) {
    case RequestKind::kAllreduce:
    case RequestKind::kBroadcast:
      return MarkBuffers(name);
    case RequestKind::kAllgather:
    case RequestKind::kReduceScatter:
    case RequestKind::kAlltoall:
      return MarkInput(name);
    default:
      return;
  }
}

absl::Status Engine::MarkOnBoard(LocalName* name) {
  MarkValue value;
  value.signature = name->pending->signature;
  const ArenaOffsets offsets = OffsetsInArena(*name->pending, world_->arenas());
  value.input_at = offsets.input;
  value.output_at = offsets.output;
  value.wants_number = name->wants_number = WantsNumber(*name);
  const absl::StatusOr<uint32_t> number = world_->board().Mark(*name->name, value);
  if (!number.ok()) return number.status();
  name->board_number = *number;
  by_number_[*number] = name;
  return absl::OkStatus();
}

// Unnamed requests whose turn has become free, in their order.
void Engine::SubmitDeferredLocked() {
  while (!deferred_.empty() && deferred_.front()->local->pending == nullptr) {
    Request* request = deferred_.front();
    deferred_.pop_front();
    request->local->pending = request;
    try {
      MakeRoomLocked();
      if (absl::Status marked = MarkLocked(request->local); !marked.ok()) {
        request->status = marked;
        CompleteLocked(request);
      }
    } catch (const std::bad_alloc& error) {
      // The others wait for its turn. The executor ends what is pending.
      return world_->board().AbortThrown(error, *request->local->name);
    }
  }
}

}  // namespace hvd
