// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "tests/simulator/world_parts.h"

namespace hvd::rt::simulator {
namespace {

constexpr char kLeaveName[] = "leave";

std::string NameOf(int name) { return "t" + std::to_string(name); }

}  // namespace

// Executes or submits one thing. False when there is nothing to do until somebody else moves.
bool World::StepRank(int r) {
  Rank& rank = ranks_[r];
  if (pages_[host_of_[r]]->aborted.load() != 0) return false;
  const bool submits_first = random_.OneIn(2);
  if (submits_first && Submit(r)) return true;
  if (pages_[host_of_[r]]->aborted.load() != 0) return false;
  const int sets = static_cast<int>(sets_.size());
  const int first = static_cast<int>(random_.Below(static_cast<uint64_t>(sets)));
  for (int i = 0; i < sets; ++i) {
    const int set = (first + i) % sets;
    if (rank.member[set] >= 0 && Execute(r, set)) return true;
  }
  return !submits_first && Submit(r);
}

World::Host& World::HostOf(Set* set, int member) {
  return set->hosts[set->topology.place(member).host];
}

// One batch of one set, if there is one.
bool World::Execute(int r, int index) {
  Set& set = *sets_[index];
  const int member = ranks_[r].member[index];
  Board& board = *set.boards[member];
  if (!board.HasNext()) board.Close();
  if (!board.HasNext()) return false;
  const std::vector<LogEntry> batch = board.NextBatch();
  bool is_over = false;
  for (size_t i = 0; i < batch.size(); ++i) {
    const int name = NameIndex(board.Name(batch[i].number));
    CheckEntry(&set, member, {&batch[i], name, i + 1 == batch.size()});
    NoteExecuted(r, index, name);
    is_over = is_over || name == plan_.names + 1;
  }
  const uint32_t bell = pages_[host_of_[r]]->bell.word.load();
  board.Advance();
  Host& host = HostOf(&set, member);
  if (pages_[host_of_[r]]->bell.word.load() != bell) {
    if (set.several_hosts) Wake(host.actor);
    WakeHost(&set, host.index);
  }
  if (is_over && set.several_hosts && set.topology.place(member).local_rank == 0) {
    host.leader->SayBye();
    Wake(host.actor);
  }
  return true;
}

int World::NameIndex(const std::string& name) const {
  if (name == kLeaveName) return plan_.names + 1;
  if (name[0] != 't') return plan_.names;  // the join
  return std::stoi(name.substr(1));
}

void World::NoteExecuted(int r, int index, int name) {
  Rank& rank = ranks_[r];
  int& round = rank.round_of[index][name];
  if (round == 0 && !rank.joined[index]) {
    Fail("rank " + std::to_string(r) + " executed what it had not submitted");
  }
  if (round != 0) --rank.open[round - 1];
  round = 0;
  if (name == plan_.names) rank.joined[index] = false;
  if (rank.leaving && rank.open.back() == 0) rank.finished = true;
}

void World::NextRound(Rank* rank) {
  ++rank->round;
  rank->order.clear();
  rank->submitted = 0;
}

// At most the last round of a set may still be open: entries are few.
bool World::MayStart(const Rank& rank, int round) const {
  bool is_last = true;
  for (int k = round - 1; k >= 0; --k) {
    if (plan_.rounds[k].set != plan_.rounds[round].set) continue;
    if (!is_last && rank.open[k] > 0) return false;
    is_last = false;
  }
  return true;
}

bool World::Submit(int r) {
  Rank& rank = ranks_[r];
  if (rank.leaving) return false;
  const int rounds = static_cast<int>(plan_.rounds.size());
  const bool has_joined = std::count(rank.joined.begin(), rank.joined.end(), true) > 0;
  if (plan_.leaver == r && rank.round >= plan_.leaver_round && !has_joined) return LeaveAll(r);
  if (rank.round == rounds) return LeaveAll(r);
  const Round& round = plan_.rounds[rank.round];
  if (rank.member[round.set] < 0) {
    NextRound(&rank);
    return true;
  }
  if (rank.joins[round.set] > round.segment && !round.is_join) {  // it has joined
    NextRound(&rank);
    return true;
  }
  if (round.is_join || plan_.HasJoinedBefore(r, rank.round)) return SubmitJoin(r, round);
  if (rank.order.empty()) {
    if (!MayStart(rank, rank.round)) return false;
    rank.order = DrawOrder(r, round);
  }
  if (rank.submitted < rank.order.size()) return SubmitItem(r, round);
  if (round.waits && rank.open[rank.round] > 0) return false;
  NextRound(&rank);
  return true;
}

std::vector<int> World::DrawOrder(int r, const Round& round) {
  std::vector<int> order(round.items.size());
  std::iota(order.begin(), order.end(), 0);
  if (round.opposite) {
    if (r % 2 == 1) std::reverse(order.begin(), order.end());
    return order;
  }
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
  return order;
}

bool World::SubmitJoin(int r, const Round& round) {
  Rank& rank = ranks_[r];
  if (rank.joins[round.set] == round.segment) return JoinSet(r, round.set);
  if (rank.joined[round.set]) return false;  // until all have
  NextRound(&rank);
  return true;
}

bool World::JoinSet(int r, int index) {
  Set& set = *sets_[index];
  Rank& rank = ranks_[r];
  const int member = rank.member[index];
  const absl::StatusOr<uint32_t> number = set.boards[member]->Join();
  if (!number.ok()) return Refused(r, number.status());
  ++rank.joins[index];
  rank.joined[index] = true;
  rank.round_of[index][plan_.names] = rank.round + 1;
  ++rank.open[rank.round];
  Item item;
  item.name = plan_.names;
  item.kind = RequestKind::kJoin;
  NoteMark(&set, member, item);
  return true;
}

bool World::SubmitItem(int r, const Round& round) {
  Set& set = *sets_[round.set];
  Rank& rank = ranks_[r];
  const int member = rank.member[round.set];
  const Item& item = round.items[rank.order[rank.submitted]];
  int& open_round = rank.round_of[round.set][item.name];
  if (open_round != 0) return false;
  const absl::StatusOr<uint32_t> number =
      set.boards[member]->Mark(NameOf(item.name), {SignatureOf(item, r)});
  if (!number.ok()) return Refused(r, number.status());
  ++rank.submitted;
  open_round = rank.round + 1;
  ++rank.open[rank.round];
  NoteMark(&set, member, item);
  return true;
}

// False: the rank is broken.
bool World::Refused(int r, const absl::Status& status) {
  if (absl::IsAborted(status)) {
    BreakHost(host_of_[r]);
  } else {
    Fail("rank " + std::to_string(r) + " was refused: " + status.ToString());
  }
  return false;
}

bool World::LeaveAll(int r) {
  Rank& rank = ranks_[r];
  rank.leaving = true;
  for (int s = 0; s < static_cast<int>(sets_.size()); ++s) {
    const int member = rank.member[s];
    if (member < 0) continue;
    Set& set = *sets_[s];
    Item item;
    item.name = plan_.names + 1;
    item.kind = RequestKind::kLeave;
    absl::Status status = set.boards[member]->Mark(kLeaveName, {SignatureOf(item, r)}).status();
    if (status.ok()) status = set.boards[member]->NoteLeft();
    if (!status.ok()) return Refused(r, status);
    ++rank.open.back();
    rank.round_of[s][item.name] = static_cast<int>(rank.open.size());
    NoteMark(&set, member, item);
  }
  return true;
}

void World::NoteMark(Set* set, int member, const Item& item) {
  ++stats_.marks;
  Marks& marks = set->marks[item.name];
  const Signature signature = SignatureOf(item, set->members[member]);
  if (marks.count == 0) {
    marks.first = signature;
    marks.item = item;
    marks.differ = false;
  } else if (!Compatible(marks.first, signature)) {
    marks.differ = true;
  }
  ++marks.count;
  marks.by_member[member] = true;
  Host& host = HostOf(set, member);
  if (!set->several_hosts) {
    if (set->boards[member]->HasOpen()) WakeHost(set, host.index);
  } else if (set->boards[set->topology.rank_at(host.index, 0)]->leader_side().HasOutbox()) {
    Wake(host.actor);
  }
}

void World::WakeHost(Set* set, int host) {
  const int first = set->topology.rank_at(host, 0);
  for (int r = 0; r < set->topology.hosts()[host].ranks; ++r) {
    Wake(static_cast<uint32_t>(set->members[first + r]));
  }
}

// Every rank must find what the first one found there.
void World::CheckEntry(Set* set, int member, const Seen& seen) {
  const LogEntry& entry = *seen.entry;
  uint64_t word = std::hash<std::string>()(entry.error) * 31 + static_cast<uint64_t>(seen.name);
  word = word * 31 + static_cast<uint64_t>(entry.contributors * 7 + entry.result);
  word = word * 31 + static_cast<uint64_t>(entry.signature.shape[1]);
  word = word * 2 + (seen.ends_batch ? 1 : 0);
  const size_t at = set->executed[member]++;
  if (at == set->log.size()) {
    ++stats_.decisions;
    stats_.batches += seen.ends_batch ? 1 : 0;
    set->log.push_back(word);
    const Marks& marks = set->marks[seen.name];
    set->items.push_back(marks.item);
    const bool all = marks.count == static_cast<int>(set->members.size());
    set->present.push_back(all ? std::vector<bool>() : marks.by_member);
    CheckRun(set, seen);
  } else if (set->log[at] != word) {
    Fail("rank " + std::to_string(set->members[member]) + " executes another sequence");
  }
  const bool checks_rows = set->members.size() < 300 || member % 256 == 0;
  if (entry.rows.empty() || !checks_rows) return;
  for (size_t m = 0; m < set->members.size(); ++m) {
    const bool absent = !set->present[at].empty() && !set->present[at][m];
    const int64_t rows = absent ? 0 : RowsOf(set->items[at], set->members[m]);
    if (entry.rows[m] != rows) return Fail("wrong rows");
  }
}

// The first rank is about to run it: have all members asked for it, or joined?
void World::CheckRun(Set* set, const Seen& seen) {
  Marks& marks = set->marks[seen.name];
  const LogEntry& entry = *seen.entry;
  const int members = static_cast<int>(set->members.size());
  if (entry.contributors != marks.count) {
    Fail("'" + NameOf(seen.name) + "' has " + std::to_string(entry.contributors) +
         " contributors instead of " + std::to_string(marks.count) + DescribeOpen());
  }
  for (int m = 0; m < members && marks.count < members; ++m) {
    if (!marks.by_member[m] && !ranks_[set->members[m]].joined[set->index]) {
      Fail("'" + NameOf(seen.name) + "' runs without rank " + std::to_string(set->members[m]));
    }
  }
  const bool may_run = marks.count == members || RunsWhileJoined(marks.first);
  if (entry.error.empty() != (!marks.differ && may_run)) {
    Fail("'" + NameOf(seen.name) + "' ends with: " + entry.error);
  }
  if (entry.error.empty() && !Compatible(entry.signature, marks.first)) Fail("wrong signature");
  const bool has_rows = marks.item.kind == RequestKind::kAllgather && entry.error.empty();
  if (has_rows == entry.rows.empty()) Fail("rows are missing");
  marks.by_member.assign(set->members.size(), false);
  marks.count = 0;
}

}  // namespace hvd::rt::simulator
