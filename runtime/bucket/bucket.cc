// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/bucket.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/printable.h"
#include "runtime/collective/collectives.h"
#include "runtime/errors/errors.h"
#include "runtime/errors/forked.h"

namespace hvd::rt {
namespace {

// True: `handle` is done, or is none. The result of a wait for it is told later.
bool Await(hvd_handle_t handle, Bucket::Clock::time_point end) {
  if (handle == 0) return true;
  const auto left =
      std::chrono::duration_cast<std::chrono::microseconds>(end - Bucket::Clock::now()).count();
  int32_t done = 0;
  const hvd_status_t status = hvd_wait_for(handle, std::max<int64_t>(left, 0), &done);
  return status != HVD_OK || done != 0;
}

}  // namespace

Bucket::Bucket(BucketPlan plan, Options options, const BucketHome& home)
    : plan_(std::move(plan)),
      options_(std::move(options)),
      ready_(plan_),
      agreement_(
          {&plan_, options_.dtype, options_.reduction.process_set, options_.name, home.epoch}) {
  ResetLocked();
}

absl::StatusOr<std::unique_ptr<Bucket>> Bucket::Create(BucketPlan plan, Options options,
                                                       const BucketHome& home) {
  std::unique_ptr<Bucket> bucket(new Bucket(std::move(plan), std::move(options), home));
  const absl::Status status = bucket->Allocate(home);
  if (status.ok()) return bucket;
  return absl::Status(status.code(), "bucket " + ShownName(bucket->options_.name) + ": " +
                                         std::string(status.message()));
}

absl::Status Bucket::Allocate(const BucketHome& home) {
  auto place =
      options_.device_type == HVD_CUDA
          ? MakeDevicePlace({home.gpus, options_.device_id, plan_.bytes, plan_.chunks.size()})
          : MakeHostPlace(plan_.bytes, home.arena);
  if (!place.ok()) return place.status();
  place_ = *std::move(place);
  // The memory between the tensors is reduced with them: it must hold numbers.
  const size_t element = DtypeBytes(options_.dtype);
  absl::Status cleared;
  for (size_t i = 0; i < plan_.views.size() && cleared.ok(); ++i) {
    const size_t end = plan_.views[i].offset + plan_.views[i].count * element;
    const size_t next = i + 1 < plan_.views.size() ? plan_.views[i + 1].offset : plan_.bytes;
    cleared = place_->Clear(place_->memory() + end, next - end);
  }
  return cleared;
}

// The child of a fork has a copy, of which nothing is under way.
Bucket::~Bucket() {
  if (place_ == nullptr || IsForkedChild()) return;
  try {
    (void)Finish();
  } catch (const std::bad_alloc&) {
    AwaitAll();
  }
}

// Where there is no memory for more: what is under way has ended, however.
void Bucket::AwaitAll() {
  const MutexLock lock(&mutex_);
  if (agreement_.asked() != 0) (void)hvd_wait(agreement_.asked());
  for (Chunk& chunk : chunks_) {
    if (!chunk.ended && chunk.handle != 0) (void)hvd_wait(chunk.handle);
  }
}

void* Bucket::View(int32_t index) const {
  if (index < 0 || static_cast<size_t>(index) >= plan_.views.size()) return nullptr;
  return place_->memory() + plan_.views[index].offset;
}

void Bucket::ResetLocked() {
  ready_.Clear();
  chunks_.assign(plan_.chunks.size(), Chunk());
  agreement_.Forget();
}

hvd_status_t Bucket::SubmitLocked(size_t index) {
  if (!options_.compared) {
    if (const hvd_status_t asked = agreement_.Ask(); asked != HVD_OK) return asked;
  }
  const int64_t shape[] = {static_cast<int64_t>(plan_.chunks[index].elements)};
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = place_->memory() + plan_.chunks[index].offset;
  tensor.shape = shape;
  tensor.ndim = 1;
  tensor.dtype = options_.dtype;
  hvd_options_t options = options_.reduction;
  const std::string name = options_.name + "." + std::to_string(index);
  options.name = name.c_str();
  options.contents = options_.contents.c_str();
  const absl::Status placed = place_->PutPlace(index, &tensor, &options);
  if (!placed.ok()) return Return(placed);
  return hvd_allreduce_async(&tensor, &tensor, &options, &chunks_[index].handle);
}

hvd_status_t Bucket::CheckNotReadyLocked(int32_t index) const {
  if (View(index) == nullptr) {
    return Fail(HVD_ERR_INVALID, "bucket " + ShownName(options_.name) + " has no tensor " +
                                     std::to_string(index) + "; it has " +
                                     std::to_string(plan_.views.size()));
  }
  if (!ready_.Has(static_cast<size_t>(index))) return HVD_OK;
  return Fail(HVD_ERR_INVALID, "tensor " + std::to_string(index) + " of bucket " +
                                   ShownName(options_.name) +
                                   " is ready already; wait for the bucket before its next use");
}

hvd_status_t Bucket::Ready(int32_t index, void* stream) {
  if (IsForkedChild()) return NotInitialized();  // mutex_ may be held for ever
  const MutexLock lock(&mutex_);
  const hvd_status_t checked = CheckNotReadyLocked(index);
  if (checked != HVD_OK) return checked;
  const absl::Status noted = place_->NoteWriter(plan_.views[index].chunk, stream);
  return noted.ok() ? ReadyLocked(static_cast<size_t>(index)) : Return(noted);
}

hvd_status_t Bucket::ReadyLocked(size_t index) {
  if (ready_.IsLastOfChunk(index)) {
    const hvd_status_t submitted = SubmitLocked(plan_.views[index].chunk);
    if (submitted != HVD_OK) return submitted;
  }
  ready_.Add(index);
  return HVD_OK;
}

hvd_status_t Bucket::Put(int32_t index, const hvd_tensor_t& source) {
  if (IsForkedChild()) return NotInitialized();
  {
    const MutexLock lock(&mutex_);
    const hvd_status_t checked = CheckNotReadyLocked(index);
    if (checked != HVD_OK) return checked;
  }
  const size_t count = plan_.views[index].count;
  const absl::Status copied =
      place_->Copy(source, {View(index), options_.dtype, count},
                   "tensor " + std::to_string(index) + " of bucket " + ShownName(options_.name));
  if (!copied.ok()) return Return(copied);
  if (source.device_type == HVD_CUDA) return Ready(index, source.stream);
  const MutexLock lock(&mutex_);
  const hvd_status_t checked = CheckNotReadyLocked(index);
  return checked == HVD_OK ? ReadyLocked(static_cast<size_t>(index)) : checked;
}

// HVD_ERR_INVALID names the tensors from `begin` to `end` - 1 that are not ready: `what` wants
// them.
hvd_status_t Bucket::MissingLocked(const std::string& what, size_t begin, size_t end) const {
  const std::string missing = ready_.Missing(begin, end);
  if (missing.empty()) return HVD_OK;
  return Fail(HVD_ERR_INVALID, what + "bucket " + ShownName(options_.name) +
                                   " cannot be waited for: not ready are " + missing);
}

hvd_status_t Bucket::BeginWaitLocked() {
  const hvd_status_t missing = MissingLocked("", 0, ready_.size());
  if (missing != HVD_OK) return missing;
  if (!plan_.views.empty() || options_.compared) return HVD_OK;
  return agreement_.Ask();  // another rank's may have tensors
}

hvd_status_t Bucket::Wait() {
  if (IsForkedChild()) return NotInitialized();
  {
    const MutexLock lock(&mutex_);
    if (const hvd_status_t begun = BeginWaitLocked(); begun != HVD_OK) return begun;
  }
  // Until all are done, a tensor that is made ready again is refused.
  const hvd_status_t status = Finish();
  const MutexLock lock(&mutex_);
  ResetLocked();
  return status;
}

hvd_status_t Bucket::WaitOn(void* stream) {
  const hvd_status_t status = Wait();
  if (status != HVD_OK) return status;
  const MutexLock lock(&mutex_);
  return Return(place_->LetFollow(stream));
}

// After a mismatch the wait ends what others wait for, and may block: its error counts more.
hvd_status_t Bucket::WaitUntil(Clock::time_point end, int32_t* done) {
  if (IsForkedChild()) return NotInitialized();
  std::vector<hvd_handle_t> handles;
  {
    const MutexLock lock(&mutex_);
    if (const hvd_status_t begun = BeginWaitLocked(); begun != HVD_OK) return begun;
    handles.push_back(agreement_.asked());
    for (const Chunk& chunk : chunks_) handles.push_back(chunk.ended ? 0 : chunk.handle);
  }
  *done = Await(handles[0], end) ? 1 : 0;
  if (*done == 0 || EndAgreement() != HVD_OK) return HVD_OK;
  for (const hvd_handle_t handle : handles) {
    if (!Await(handle, end)) *done = 0;
  }
  return HVD_OK;
}

hvd_status_t Bucket::WaitTensor(int32_t index, Clock::time_point end, int32_t* done) {
  if (IsForkedChild()) return NotInitialized();
  hvd_handle_t asked = 0, handle = 0;
  size_t chunk = 0;
  {
    const MutexLock lock(&mutex_);
    if (View(index) == nullptr) return CheckNotReadyLocked(index);
    chunk = plan_.views[index].chunk;
    const size_t first = plan_.chunks[chunk].first;
    const hvd_status_t missing = MissingLocked("tensor " + std::to_string(index) + " of ", first,
                                               first + plan_.chunks[chunk].tensors);
    if (missing != HVD_OK) return missing;
    asked = agreement_.asked();
    if (!chunks_[chunk].ended) handle = chunks_[chunk].handle;
  }
  *done = Await(asked, end) ? 1 : 0;
  if (*done == 0) return HVD_OK;
  if (const hvd_status_t agreed = EndAgreement(); agreed != HVD_OK) return agreed;
  *done = Await(handle, end) ? 1 : 0;
  return *done == 0 ? HVD_OK : EndChunk(chunk);
}

hvd_status_t Bucket::Reset() {
  if (IsForkedChild()) return NotInitialized();
  {
    const MutexLock lock(&mutex_);
    if (ready_.empty()) return HVD_OK;
    for (size_t i = 0; i < ready_.size(); ++i) {
      if (ready_.Has(i)) continue;
      const absl::Status cleared = place_->Clear(place_->memory() + plan_.views[i].offset,
                                                 plan_.views[i].count * DtypeBytes(options_.dtype));
      if (!cleared.ok()) return Return(cleared);
      if (const hvd_status_t made = ReadyLocked(i); made != HVD_OK) return made;
    }
  }
  return Wait();
}

hvd_status_t Bucket::EndAgreement() {
  const MutexLock lock(&mutex_);
  return agreement_.End();
}

hvd_status_t Bucket::EndChunk(size_t index) {
  const MutexLock lock(&mutex_);
  Chunk& chunk = chunks_[index];
  if (!chunk.ended && chunk.handle != 0) {
    chunk.ended = true;
    place_->EndCall(index, chunk.handle);
    chunk.status = hvd_wait(chunk.handle);
    if (chunk.status != HVD_OK) chunk.why = hvd_last_error();
  }
  return chunk.status == HVD_OK ? HVD_OK : Fail(chunk.status, chunk.why);
}

// Waits for all that is under way. The first error stays the thread's last; the agreement's says
// most.
hvd_status_t Bucket::Finish() {
  std::vector<hvd_handle_t> handles;
  {
    const MutexLock lock(&mutex_);
    handles.push_back(agreement_.asked());
    for (const Chunk& chunk : chunks_) handles.push_back(chunk.ended ? 0 : chunk.handle);
  }
  (void)Await(handles[0], Clock::time_point::max());
  hvd_status_t first = EndAgreement();
  std::string why = first != HVD_OK ? hvd_last_error() : "";
  FillIn();
  for (size_t i = 0; i < plan_.chunks.size(); ++i) {
    (void)Await(handles[i + 1], Clock::time_point::max());
    const hvd_status_t status = EndChunk(i);
    if (first != HVD_OK || status == HVD_OK) continue;
    first = status;
    why = hvd_last_error();
  }
  return first == HVD_OK ? HVD_OK : Fail(first, std::move(why));
}

// Other ranks have more chunks than this one and wait for it: an empty tensor under the name of
// each ends that.
void Bucket::FillIn() {
  const int64_t nothing = 0;
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.shape = &nothing;
  tensor.ndim = 1;
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = options_.reduction.process_set;
  size_t most_chunks = 0;
  {
    const MutexLock lock(&mutex_);
    most_chunks = agreement_.most_chunks();
  }
  for (size_t i = plan_.chunks.size(); i < most_chunks; ++i) {
    const std::string name = options_.name + "." + std::to_string(i);
    options.name = name.c_str();
    hvd_allreduce(&tensor, &tensor, &options);
  }
}

}  // namespace hvd::rt
