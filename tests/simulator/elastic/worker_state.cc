// SPDX-License-Identifier: Apache-2.0
// Worker's part for its state: what State does on a commit and a sync, in its order.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/simulator/elastic/world.h"

namespace hvd::elastic_simulator {
namespace {

rt::StateLayout ModelLayout() {
  rt::StateItem item;
  item.name = "model";
  item.shape = {static_cast<int64_t>(sizeof(ModelBytes))};
  item.bytes = sizeof(ModelBytes);
  return rt::PlanState({item});
}

const rt::StateLayout& Layout() {
  static const rt::StateLayout layout = ModelLayout();
  return layout;
}

}  // namespace

StateHead* Worker::HeadOf(uint64_t number) {
  return static_cast<StateHead*>(epoch_->files[rt::CommitBook::FileOf(number)].at());
}

// ---- sync ----

Course<Worker::Code> Worker::Sync() {
  const v1::EpochStart& told = epoch_->start;
  const Mutant mutant = world_->mutant;
  const uint64_t newest = book_.complete();
  const bool is_root = epoch_->rank == told.root();
  bool failed = false;
  const bool stays = mutant == Mutant::kNoWayBack && model_.steps > 0;
  const bool has = !epoch_->needs_state || mutant == Mutant::kReadsAnyway;
  if (told.rolls_back() && has && newest > 0 && !epoch_->has_gone_back && !stays) {
    co_await At(Place::kRestores);
    failed = !Restore(newest);
    epoch_->has_gone_back = !failed;
  }
  const bool takes_part = epoch_->needs_state || is_root || mutant != Mutant::kOwnSync;
  Code code = failed ? Code::kDiffers : Code::kOk;
  if (!told.needy().empty() && takes_part) {
    code = Code::kOk;
    if (epoch_->needs_state || is_root) code = co_await Bring(failed);
    const bool counts = mutant == Mutant::kSyncCounts;
    const rt::CommitBy by = counts ? rt::CommitBy::kProgram : rt::CommitBy::kSync;
    if (code == Code::kOk) code = co_await Commit(by, failed);
  }
  if (code == Code::kOk) world_->checker.Synced(PartNow(), model_);
  co_return code;
}

bool Worker::Restore(uint64_t number) {
  StateHead* const head = HeadOf(number);
  if (CompleteState(*head).number != number) {
    world_->checker.Fail(Violation::kNoState,
                         absl::StrCat("rank ", epoch_->rank, " of epoch ", epoch_->start.epoch(),
                                      " (", Describe(), ") goes back to commit ", number,
                                      ", which host ", host_->name(), " does not have"));
    return false;
  }
  ModelBytes bytes;
  std::memcpy(bytes.data(), reinterpret_cast<char*>(head) + Layout().items[0].offset,
              sizeof(bytes));
  if (!model_.Read(bytes)) {
    world_->checker.Fail(Violation::kContent, absl::StrCat("commit ", number, " on host ",
                                                           host_->name(), " is of several states"));
  }
  world_->counts.Count("restored");
  return true;
}

// The root's state to the needy, in a set of these alone.
Course<Worker::Code> Worker::Bring(bool failed) {
  Collective bring;
  bring.set = 1;
  bring.name = "bring";
  bring.ranks.assign(epoch_->start.needy().begin(), epoch_->start.needy().end());
  bring.ranks.push_back(epoch_->start.root());
  if (!epoch_->needs_state) {
    LearnSteps();
    bring.words = {static_cast<int64_t>(book_.complete()), static_cast<int64_t>(model_.steps),
                   static_cast<int64_t>(model_.lineage), failed ? 1 : 0,
                   static_cast<int64_t>(book_.steps())};
  }
  place_ = Place::kBrings;
  const int root = epoch_->start.root();
  const std::optional<Gifts> all = co_await Together(std::move(bring));
  if (!all.has_value()) co_return Code::kAborted;
  const Words& words = all->at(root).words;
  if (words.size() != 5 || words[3] != 0) co_return Code::kDiffers;
  book_.GoOnFrom(static_cast<uint64_t>(words[0]));
  book_.Learn(static_cast<uint64_t>(words[4]));
  model_.steps = static_cast<uint64_t>(words[1]);
  model_.lineage = static_cast<uint64_t>(words[2]);
  if (epoch_->needs_state) world_->counts.Count("brought");
  co_return Code::kOk;
}

// ---- commit ----

// As StateHome::Steps.
void Worker::LearnSteps() {
  const uint64_t newest = book_.complete();
  if (newest == 0) return book_.Learn(0);
  const StateWord word = CompleteState(*HeadOf(newest));
  if (word.number == newest) book_.Learn(word.steps);
}

Course<Worker::Code> Worker::Commit(rt::CommitBy by, bool failed) {
  const uint64_t number = book_.next();
  rt::AgreementSide side;
  if (!failed) {
    const Code written = co_await Write(by);
    if (written == Code::kAborted) co_return written;
    side.layout = Layout().hash;
  }
  side.number = failed ? rt::kFailed : static_cast<int64_t>(number);
  co_return co_await Agree(by, side, number);
}

Course<Worker::Code> Worker::Write(rt::CommitBy by) {
  if (Aborted()) co_return Code::kAborted;
  LearnSteps();
  const uint64_t number = book_.next();
  StateHead* const head = HeadOf(number);
  world_->checker.WritesCommit(PartNow(), number, model_);
  BeginState(&head->cells[epoch_->local_rank]);
  co_await At(Place::kBeginsState);
  const bool header_first = world_->mutant == Mutant::kHeaderFirst;
  if (header_first) EndCell(by);
  const rt::ByteRange share = rt::ShareOf(Layout(), epoch_->local_rank, epoch_->local_size);
  const ModelBytes bytes = model_.Bytes();
  const uint64_t from = Layout().items[0].offset;
  for (uint64_t at = share.begin; at < share.end;) {
    const uint64_t end = std::min(share.end, at + 2 * rt::kStateLine);
    world_->checker.Writes(PartNow());
    std::memcpy(reinterpret_cast<char*>(head) + at,
                reinterpret_cast<const char*>(bytes.data()) + (at - from), end - at);
    at = end;
    co_await At(Place::kWritesState);
  }
  co_await At(Place::kEndsState);
  world_->checker.Writes(PartNow());
  if (!header_first) EndCell(by);
  host_->NoteWritten(number);
  world_->checker.GetsOn(PartNow());
  co_return Code::kOk;
}

void Worker::EndCell(rt::CommitBy by) {
  const uint64_t number = book_.next();
  StateWord word;
  word.steps = book_.NextSteps(by);
  if (world_->scenario.has_place) word.place = Mix(model_.steps, 7) | 1;
  word.number = number;
  word.epoch = epoch_->start.epoch();
  word.layout = Layout().hash;
  word.local_size = static_cast<uint32_t>(epoch_->local_size);
  EndState(&HeadOf(number)->cells[epoch_->local_rank], word);
}

void Worker::TakeBack(uint64_t number) {
  if (!Aborted()) BeginState(&HeadOf(number)->cells[epoch_->local_rank]);
}

// Agrees on a commit, or on a check, whose `number` is 0.
Course<Worker::Code> Worker::Agree(rt::CommitBy by, rt::AgreementSide side, uint64_t number) {
  const Mutant mutant = world_->mutant;
  side.is_change = epoch_->page->change.load() != 0;
  if (mutant == Mutant::kStaleChange) side.is_change |= epoch_->stale_change;
  was_changed_ |= side.is_change;
  const bool own_change = side.is_change;
  if (mutant == Mutant::kNoAgreement && number != 0) {
    book_.Hear({rt::AgreementVerdict::kAgreed, ""}, by);
    world_->checker.Returned(PartNow(), number, model_);
    co_return Code::kOk;
  }
  Collective agree;
  agree.name = "state";
  const rt::AgreementWords words = rt::WordsOf(side);
  agree.words.assign(words.begin(), words.end());
  place_ = Place::kAgrees;
  const std::optional<Gifts> all = co_await Together(std::move(agree));
  if (!all.has_value()) co_return Code::kAborted;
  rt::AgreementWords most = words;
  for (const auto& [rank, given] : *all) {
    for (size_t i = 0; i < most.size() && i < given.words.size(); ++i) {
      most[i] = std::max(most[i], given.words[i]);
    }
  }
  rt::Agreement agreement = rt::ReadAgreement(most);
  if (mutant == Mutant::kOwnChange && agreement.verdict != rt::AgreementVerdict::kDiffers) {
    agreement.verdict = own_change ? rt::AgreementVerdict::kChange : rt::AgreementVerdict::kAgreed;
  }
  const Code code = Hear(by, agreement, number);
  if (number != 0) co_await At(Place::kCommitted);
  co_return code;
}

Worker::Code Worker::Hear(rt::CommitBy by, const rt::Agreement& agreement, uint64_t number) {
  if (agreement.verdict == rt::AgreementVerdict::kDiffers) {
    world_->checker.Fail(
        Violation::kContent,
        absl::StrCat("no agreement in epoch ", epoch_->start.epoch(), ": ", agreement.why));
    if (number != 0) TakeBack(number);
    return Code::kDiffers;
  }
  const bool change = agreement.verdict == rt::AgreementVerdict::kChange;
  world_->checker.Agreed(PartNow(), epoch_->agreements++, change);
  if (number != 0) {
    book_.Hear(agreement, by);
    world_->checker.Returned(PartNow(), number, model_);
    world_->counts.Count("commit returned");
    if (world_->tells) {
      world_->Tell(absl::StrCat("commit ", number, " returns to member ", seat_.member,
                                " of epoch ", epoch_->start.epoch(),
                                change ? ", members change" : ""));
    }
    world_->Progress();
  }
  if (change) world_->checker.Updated(PartNow(), model_);
  return change ? Code::kUpdated : Code::kOk;
}

}  // namespace hvd::elastic_simulator
