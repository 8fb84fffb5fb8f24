// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board.h"

#include "base/printable.h"

namespace hvd::rt {
namespace {

constexpr char kJoinName[] = "\x01join";  // as kOwnName

}  // namespace

size_t Board::Bytes(int local_size, int world_size, uint32_t numbers) {
  return BoardMemory::Bytes({local_size, world_size, numbers});
}

Board::Board(const BoardPlace& place)
    : room_(place),
      names_(&room_),
      log_(&room_),
      outbox_(&room_),
      completion_(&room_, &log_, &outbox_),
      marks_(&room_, &names_, &completion_),
      away_(&room_, &names_, &completion_, &outbox_),
      leader_side_({&room_, &names_, &log_, &outbox_, &completion_}) {}

absl::StatusOr<uint32_t> Board::Mark(std::string_view name, const MarkValue& value) {
  if (away_.is_away()) return MarkNew(name, value);
  const BoardMarks::Marked marked = marks_.MarkKnown(name, value);
  if (marked.number == kNoNumber) return MarkNew(name, value);
  return AfterMark(marked, name);
}

absl::StatusOr<uint32_t> Board::MarkNew(std::string_view name, const MarkValue& value) {
  BoardMarks::Marked marked;
  const auto mark = [&]() -> absl::StatusOr<uint32_t> {
    kBoardLock.AssertHeld();
    if (away_.has_joined() && !away_.Owes(name)) {
      return absl::FailedPreconditionError(ShownName(name) +
                                           ": this rank has joined; it submits again when its join "
                                           "has returned");
    }
    marked = marks_.MarkNew(name, value);
    if (IsNumber(marked.number)) away_.HasMarked(marked.number);
    return marked.number;
  };
  const absl::StatusOr<uint32_t> number = room_.WithRoom(name, mark);
  return number.ok() ? AfterMark(marked, name) : number;
}

absl::StatusOr<uint32_t> Board::AfterMark(BoardMarks::Marked marked, std::string_view name) {
  if (room_.header().left_count.load() == 0) return marked.number;
  absl::Status left = away_.CheckLeft(marked.number, marked.run, name);
  if (!left.ok()) return left;
  return marked.number;
}

absl::StatusOr<uint32_t> Board::Join(absl::Span<const std::string_view> owed) {
  if (away_.has_joined()) {
    return absl::FailedPreconditionError("this rank has joined already; its join has not returned");
  }
  BoardMarks::Marked marked;
  const absl::StatusOr<uint32_t> number =
      room_.WithRoom(kJoinName, [&]() -> absl::StatusOr<uint32_t> {
        kBoardLock.AssertHeld();
        // Before this rank is among the joined.
        const uint32_t found = names_.FindOrCreate(kJoinName);
        if (IsNumber(found)) marked = MarkJoin(found, owed);
        return found;
      });
  return number.ok() ? AfterMark(marked, "join") : number;
}

BoardMarks::Marked Board::MarkJoin(uint32_t number, absl::Span<const std::string_view> owed) {
  MarkValue join;
  join.signature.kind = RequestKind::kJoin;
  marks_.Forget();
  away_.BeginJoin(number, owed);
  const BoardMarks::Marked marked = marks_.MarkNew(kJoinName, join);
  away_.EndJoin(number);
  return marked;
}

void Board::Advance() {
  const BoardLog::Range batch = log_.Next();
  if (!away_.is_away()) log_.TellExecuted(batch);
  away_.Advance(batch);
  log_.SetExecuted(batch.end);
  std::atomic<uint32_t>& wanted = room_.header().room_wanted;
  if (several_hosts() && wanted.load() != 0 && wanted.exchange(0) != 0) room_.RingHost();
}

}  // namespace hvd::rt
