// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/board_way.h"

#include <utility>

#include "runtime/engine/request/tensor_places.h"

namespace hvd::rt {

BoardWay::BoardWay(Board* board, const HostArenas* arenas)
    : board_(*board), arenas_(arenas), by_number_(Board::kNumbers + 1) {
  board_.set_before_mark([this](uint32_t number) {
    kEngineLock.AssertHeld();
    if (by_number_.size() <= number) by_number_.resize(2 * size_t{number});
  });
}

BoardWay::~BoardWay() { board_.set_before_mark(nullptr); }

absl::Status BoardWay::Mark(LocalName* name, bool wants_number) {
  MarkValue value;
  value.signature = name->pending->signature;
  const ArenaOffsets offsets = OffsetsInArena(*name->pending, arenas_);
  value.input_at = offsets.input;
  value.output_at = offsets.output;
  value.wants_number = name->board.wants_number = wants_number;
  const absl::StatusOr<uint32_t> number = board_.Mark(*name->name, value);
  if (!number.ok()) return number.status();
  name->board.number = *number;
  by_number_[*number] = name;
  return absl::OkStatus();
}

absl::Status BoardWay::Join(LocalName* name, absl::Span<const std::string_view> owed) {
  const absl::StatusOr<uint32_t> number = board_.Join(owed);
  if (!number.ok()) return number.status();
  name->board.number = *number;
  by_number_[*number] = name;
  return absl::OkStatus();
}

std::vector<LogEntry> BoardWay::Next(bool* closed) {
  if (!board_.HasNext()) {
    if (!board_.HasOpen()) return {};
    board_.Close();
    *closed = true;
    if (!board_.HasNext()) return {};
  }
  return board_.NextBatch();
}

LocalName* BoardWay::Take(uint32_t number) {
  return number < by_number_.size() ? std::exchange(by_number_[number], nullptr) : nullptr;
}

}  // namespace hvd::rt
