// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/elastic/state.h"

#include <utility>

#include "runtime/errors/errors.h"
#include "runtime/state/elastic/agreement.h"

namespace hvd::rt {
namespace {

// Where this rank writes, unless the epoch has broken: then nothing is to be written any more.
absl::Status FindWriter(const ProcessSets& sets, ImageWriter* writer, uint64_t* epoch) {
  CallTarget set(sets);
  if (!set.Choose(HVD_GLOBAL_PROCESS_SET).ok()) {
    return absl::AbortedError("this rank has left the epoch (hvd_shutdown or hvd_reset)");
  }
  const EpochWorld& world = set->engine->world();
  if (world.page()->aborted.load(std::memory_order_acquire) != 0) {
    return absl::AbortedError(CauseOf(*world.page()).text);
  }
  *writer = {world.place().local_rank, world.place().local_size};
  *epoch = world.epoch();
  return absl::OkStatus();
}

}  // namespace

hvd_status_t State::Commit(CommitBy by, uint64_t* number) {
  const MutexLock lock(&home_->mutex());
  if (!home_->in_epoch()) return NotInitialized();
  const hvd_status_t code = CommitLocked(by, absl::OkStatus());
  if (number != nullptr && (code == HVD_OK || code == HVD_ERR_HOSTS_UPDATED)) {
    *number = home_->book().complete();
  }
  return code;
}

hvd_status_t State::CommitLocked(CommitBy by, const absl::Status& before) {
  const uint64_t number = home_->book().next();
  Written mine;
  const absl::Status written = before.ok() ? Write(by, &mine) : before;
  if (absl::IsAborted(written)) return Return(written);
  AgreementSide side;
  side.layout = mine.layout;
  side.number = written.ok() ? static_cast<int64_t>(number) : kFailed;
  const absl::StatusOr<Agreement> agreed = Agree(side, sets_);
  if (!agreed.ok()) {
    if (!absl::IsAborted(agreed.status())) TakeBack(number, mine);  // else others may have agreed
    return Return(agreed.status());
  }
  home_->Hear(*agreed, by);
  if (agreed->verdict == AgreementVerdict::kAgreed) return HVD_OK;
  if (agreed->verdict == AgreementVerdict::kChange)
    return Fail(HVD_ERR_HOSTS_UPDATED, kHostsUpdated);
  TakeBack(number, mine);
  return written.ok() ? Fail(HVD_ERR_MISMATCH, agreed->why) : Return(written);
}

absl::Status State::Write(CommitBy by, Written* written) {
  const uint64_t number = home_->book().next();
  ImageWriter writer;
  StateWord word;
  if (absl::Status found = FindWriter(sets_, &writer, &word.epoch); !found.ok()) return found;
  // Files that only this process writes are written whole.
  if (home_->keeps_own()) writer = ImageWriter();
  const absl::StatusOr<StateFiles*> files = home_->Files();
  if (!files.ok()) return files.status();
  home_->LearnSteps(home_->Steps());
  const size_t turn = CommitBook::FileOf(number);
  StateFile* const host = (*files)->host[turn].get();
  const StateLayout shared = PlanState(entries_.Items(false));
  *written = {shared.hash, writer.local_rank};
  const ImageOf image = {entries_, bytes_};
  if (absl::Status done = WriteImage(image, shared, writer, host); !done.ok()) return done;
  StateFile* const share = (*files)->share[turn].get();
  const StateLayout own = PlanState(entries_.Items(true));
  if (absl::Status done = WriteImage(image, own, {}, share); !done.ok()) return done;
  word.number = number;
  word.steps = home_->book().NextSteps(by);
  if (writer.local_rank == 0) word.place = PlaceOf(entries_, shared);
  word.layout = own.hash;
  word.local_size = 1;
  EndState(&share->head()->cells[0], word);
  word.layout = shared.hash;
  word.local_size = static_cast<uint32_t>(writer.local_size);
  EndState(&host->head()->cells[writer.local_rank], word);
  return absl::OkStatus();
}

// The ranks are not at one: nobody may find this number complete.
// Also where the epoch has broken since: its hosts are not quiet before this rank has left the
// call.
void State::TakeBack(uint64_t number, const Written& written) {
  const absl::StatusOr<StateFiles*> files = home_->Files();
  if (!files.ok() || written.cell < 0) return;
  const size_t turn = CommitBook::FileOf(number);
  for (const auto& [file, cell] : {std::pair((*files)->host[turn].get(), written.cell),
                                   std::pair((*files)->share[turn].get(), 0)}) {
    if (file->at(0) != nullptr) BeginState(&file->head()->cells[cell]);
  }
}

hvd_status_t State::Restore(uint64_t* number) {
  const MutexLock lock(&home_->mutex());
  if (!home_->keeps_own() && !home_->in_epoch()) return NotInitialized();  // hvdd's files are gone
  const uint64_t newest = home_->book().complete();
  if (newest == 0) {
    return Fail(HVD_ERR_INVALID, "nothing has been committed that could be restored");
  }
  const absl::Status restored = RestoreLocked(newest);
  if (!restored.ok()) {
    const hvd_status_t code = Return(restored);
    return absl::IsNotFound(restored) ? Fail(HVD_ERR_INVALID, std::string(restored.message()))
                                      : code;
  }
  if (number != nullptr) *number = newest;
  return HVD_OK;
}

// A share that has kept nothing private is as good as one that has: its tensors stay as they are.
absl::Status State::RestoreLocked(uint64_t number) {
  const absl::StatusOr<StateFiles*> files = home_->Files();
  if (!files.ok()) return files.status();
  const size_t turn = CommitBook::FileOf(number);
  StateFile* const host = (*files)->host[turn].get();
  StateFile* const share = (*files)->share[turn].get();
  const auto shared = FindImage(number, host);
  if (!shared.ok()) return shared.status();
  const auto own = FindImage(number, share);
  if (!own.ok() && !absl::IsNotFound(own.status())) return own.status();
  auto bytes = ReadBytes(*shared, *host);
  if (!bytes.ok()) return bytes.status();
  absl::Status fine = entries_.CheckFits(*shared);
  if (fine.ok() && own.ok()) fine = entries_.CheckFits(*own);
  if (fine.ok()) fine = entries_.Hold(*shared, false);
  if (fine.ok() && own.ok()) fine = entries_.Hold(*own, true);
  if (fine.ok()) fine = ReadTensors(*shared, *host, {entries_, bytes_});
  if (fine.ok() && own.ok()) fine = ReadTensors(*own, *share, {entries_, bytes_});
  if (fine.ok()) entries_.SetBytes(*std::move(bytes));
  return fine;
}

hvd_status_t State::Sync() {
  const MutexLock lock(&home_->mutex());
  if (!home_->in_epoch()) return NotInitialized();
  const EpochState& wanted = home_->state();
  const hvd_epoch_t& epoch = wanted.epoch;
  const uint64_t newest = home_->book().complete();
  absl::Status status;
  if (epoch.rolls_back != 0 && epoch.needs_state == 0 && newest > 0 && !home_->has_gone_back()) {
    status = RestoreLocked(newest);
    if (status.ok()) home_->NoteGoneBack();
  }
  if (wanted.needy.empty()) return Return(status);
  if (epoch.needs_state != 0 || epoch.rank == epoch.root) {
    GoesOnFrom from = {newest, home_->Steps()};
    const ImageOf image = {entries_, bytes_};
    status = BringState({wanted, sets_, image}, status, &from);
    if (status.ok()) home_->GoOnFrom(from.commit);
    if (status.ok()) home_->LearnSteps(from.steps);
  }
  return CommitLocked(CommitBy::kSync, status);
}

}  // namespace hvd::rt
