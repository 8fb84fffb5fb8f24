// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/leader_side.h"

#include <algorithm>

#include "base/printable.h"

namespace hvd::rt {

std::optional<OutboxEntry> BoardLeaderSide::TakeOutbox() {
  const std::optional<BoardOutbox::Item> item = parts_.outbox->Take();
  if (!item) return std::nullopt;
  return item->number != 0 ? ReadComplete(item->number) : ReadLeft(item->left_rank);
}

OutboxEntry BoardLeaderSide::ReadComplete(uint32_t number) const {
  const BoardEntry& entry = memory_.entry(number);
  // As in BoardLog::Read: what this process's other threads wrote to the entry came before their
  // marks.
  (void)entry.word.load(std::memory_order_acquire);
  OutboxEntry taken;
  taken.number = number;
  taken.tenant = entry.tenant;
  taken.report = parts_.completion->ReadReport(number);
  return taken;
}

OutboxEntry BoardLeaderSide::ReadLeft(int local_rank) const {
  OutboxEntry taken;
  taken.is_left = true;
  taken.left_rank = room_.RankHere(local_rank);
  BoardLock lock(room_);
  for (uint32_t n = 1; lock.held() && n <= memory_.header().used; ++n) {
    // An entry that is in the log is answered, though this rank may not have executed it yet.
    const MarkWord word(memory_.entry(n).word.load());
    if (word.asked() == 0 && !word.in_flight()) continue;
    if (memory_.outstanding(local_rank, n).load() != 0) {
      taken.left_names.push_back(parts_.names->Name(n));
    }
  }
  return taken;
}

void BoardLeaderSide::Append(absl::Span<const LogEntry> batch) {
  const bool has_join = std::any_of(batch.begin(), batch.end(), [](const LogEntry& entry) {
    return entry.signature.kind == RequestKind::kJoin;
  });
  if (has_join) {
    BoardLock lock(room_);  // though the epoch may have ended
    for (const LogEntry& entry : batch) parts_.log->Append(entry);
    parts_.log->Close();
    return;
  }
  for (const LogEntry& entry : batch) parts_.log->Append(entry);
  parts_.log->Close();
}

absl::StatusOr<std::optional<uint32_t>> BoardLeaderSide::Adopt(std::string_view name) {
  std::optional<uint32_t> adopted;
  const absl::StatusOr<uint32_t> found = room_.WithRoom(name, [&]() -> absl::StatusOr<uint32_t> {
    kBoardLock.AssertHeld();
    memory_.header().room_wanted.store(1);
    const uint32_t number = parts_.names->FindOrCreate(name);
    if (!IsNumber(number)) return number;
    const absl::StatusOr<bool> claimed = ClaimNeutral(number, name);
    if (!claimed.ok()) return claimed.status();
    if (*claimed) adopted = number;
    return number;
  });
  if (!found.ok()) return found.status();
  return adopted;
}

// False while a rank here is too far behind.
absl::StatusOr<bool> BoardLeaderSide::ClaimNeutral(uint32_t number, std::string_view name) {
  BoardEntry& entry = memory_.entry(number);
  const int local_size = room_.place().local_size;
  const MarkWord word(entry.word.load(std::memory_order_acquire));
  const bool all_joined = memory_.header().joined_count == static_cast<uint32_t>(local_size);
  if (word.asked() > 0 || !all_joined) {
    return absl::InternalError("the root decided " + ShownName(name) +
                               ", which no rank of this host has submitted");
  }
  if (word.neutral() < local_size || !parts_.names->IsIdle(entry, word)) return false;
  memory_.header().room_wanted.store(0);
  entry.claimed = word.bits();
  entry.word.store(word.Claimed().bits(), std::memory_order_release);
  return true;
}

}  // namespace hvd::rt
