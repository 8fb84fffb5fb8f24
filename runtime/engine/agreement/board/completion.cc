// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/board/completion.h"

#include <new>

#include "runtime/engine/agreement/board/names.h"

namespace hvd::rt {

void BoardCompletion::Complete(uint32_t number, MarkWord claimed, std::string_view wants_number) {
  room_.memory().entry(number).claimed = claimed.bits();
  if (room_.place().several_hosts) return outbox_.PushComplete(number);
  try {
    LogEntry agreed = Decide(number, claimed);
    // A rank that has joined would not hear of it.
    const bool all_hear = agreed.error.empty() && claimed.neutral() == 0 && room_.place().bind;
    if (all_hear && !wants_number.empty()) agreed.direct_number = room_.place().bind(wants_number);
    log_.Append(agreed);
  } catch (const std::bad_alloc& error) {
    room_.AbortThrown(error, BoardNames::KeptName(room_.memory().entry(number)));
  }
}

LogEntry BoardCompletion::Decide(uint32_t number, MarkWord claimed) const {
  const BoardEntry& entry = room_.memory().entry(number);
  LogEntry agreed;
  if (claimed.changed() > 0 || claimed.neutral() > 0) {
    agreed =
        hvd::rt::Decide(BoardNames::KeptName(entry), ReadReport(number), room_.place().world_size);
  } else {
    agreed.signature = entry.agreed;
    agreed.contributors = room_.place().local_size;
    if (agreed.signature.kind == RequestKind::kJoin)
      agreed.result = room_.RankHere(room_.header().last_joined);
  }
  agreed.number = number;
  if (agreed.error.empty() && agreed.signature.kind == RequestKind::kAllgather) {
    for (int r = 0; r < room_.place().local_size; ++r) {
      agreed.rows.push_back(RowsOf(number, claimed, r));
    }
  }
  return agreed;
}

// A rank that has joined brings none.
int64_t BoardCompletion::RowsOf(uint32_t number, MarkWord claimed, int local_rank) const {
  const bool neutral =
      claimed.neutral() > 0 && room_.memory().entry(number).neutral.Has(local_rank);
  return neutral ? 0 : room_.memory().marked(number, claimed.run(), local_rank).rows;
}

Report BoardCompletion::ReadReport(uint32_t number) const {
  const BoardEntry& entry = room_.memory().entry(number);
  const MarkWord claimed(entry.claimed);
  Report report;
  report.contributors = claimed.asked();
  int same = -1;
  for (int r = room_.place().local_size - 1; r >= 0; --r) {
    const bool neutral = claimed.neutral() > 0 && entry.neutral.Has(r);
    const bool changed = claimed.changed() > 0 && entry.changed.Has(r);
    if (neutral) report.joined_rank = room_.RankHere(r);
    if (!neutral && !changed) same = room_.RankHere(r);
  }
  const Asker proposed = {room_.RankHere(entry.proposed_rank), entry.proposed};
  if (same >= 0) {
    report.first = {same, entry.agreed};
    if (claimed.changed() > 0) report.other = proposed;
  } else {
    report.first = proposed;
    if (entry.mismatch) report.other = Asker{room_.RankHere(entry.other_rank), entry.other};
  }
  if (report.first.signature.kind == RequestKind::kJoin) {
    report.last_joined = room_.RankHere(room_.header().last_joined);
  }
  if (report.first.signature.kind == RequestKind::kAllgather) {
    report.rows.push_back(room_.place().host);
    for (int r = 0; r < room_.place().local_size; ++r) {
      report.rows.push_back(RowsOf(number, claimed, r));
    }
  }
  return report;
}

}  // namespace hvd::rt
