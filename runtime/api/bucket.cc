#include "runtime/api/bucket.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "hostfile/printable.h"
#include "runtime/api/errors.h"
#include "runtime/api/process.h"
#include "runtime/collective/collectives.h"

namespace hvd {
namespace {

constexpr size_t kLine = 64;
constexpr int kNamedMissing = 8;  // at most in one message

}  // namespace

Bucket::Bucket(BucketPlan plan, Options options)
    : plan_(std::move(plan)),
      options_(std::move(options)),
      agreement_({&plan_, options_.dtype, options_.reduction.process_set, options_.name}) {
  ready_.resize(plan_.views.size());
  chunks_.resize(plan_.chunks.size());
  ResetLocked();
}

absl::StatusOr<std::unique_ptr<Bucket>> Bucket::Create(BucketPlan plan, Options options) {
  std::unique_ptr<Bucket> bucket(new Bucket(std::move(plan), std::move(options)));
  if (bucket->Allocate()) return bucket;
  return absl::ResourceExhaustedError("bucket " + ShownName(bucket->options_.name) +
                                      ": no memory for its " + std::to_string(bucket->plan_.bytes) +
                                      " bytes");
}

// In the arena, else where there is room: then the tensors are reduced as any others are.
bool Bucket::Allocate() {
  absl::StatusOr<void*> memory = Process::Get().arena().Allocate(plan_.bytes);
  in_arena_ = memory.ok();
  memory_ = static_cast<std::byte*>(in_arena_ ? *memory
                                              : aligned_alloc(kLine, std::max(kLine, plan_.bytes)));
  if (memory_ == nullptr) return false;
  // What lies between the tensors is reduced with them: it must be numbers.
  const size_t element = DtypeBytes(options_.dtype);
  for (size_t i = 0; i < plan_.views.size(); ++i) {
    const size_t end = plan_.views[i].offset + plan_.views[i].count * element;
    const size_t next = i + 1 < plan_.views.size() ? plan_.views[i + 1].offset : plan_.bytes;
    std::memset(memory_ + end, 0, next - end);
  }
  return true;
}

// The child of a fork has a copy, of which nothing is under way.
Bucket::~Bucket() {
  if (!Process::forked()) (void)Finish(agreement_.Take(), chunks_);
  if (!in_arena_) {
    free(memory_);
  } else if (!Process::forked()) {
    (void)Process::Get().arena().Free(memory_).ok();  // it is what Allocate gave
  }
}

void* Bucket::View(int32_t index) const {
  if (index < 0 || static_cast<size_t>(index) >= plan_.views.size()) return nullptr;
  return memory_ + plan_.views[index].offset;
}

void Bucket::ResetLocked() {
  ready_.assign(ready_.size(), false);
  for (size_t i = 0; i < chunks_.size(); ++i) chunks_[i] = {plan_.chunks[i].tensors, 0};
}

hvd_status_t Bucket::SubmitLocked(size_t index) {
  if (const hvd_status_t asked = agreement_.Ask(); asked != HVD_OK) return asked;
  const int64_t shape[] = {static_cast<int64_t>(plan_.chunks[index].elements)};
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = memory_ + plan_.chunks[index].offset;
  tensor.shape = shape;
  tensor.ndim = 1;
  tensor.dtype = options_.dtype;
  hvd_options_t options = options_.reduction;
  const std::string name = options_.name + "." + std::to_string(index);
  options.name = name.c_str();
  return hvd_allreduce_async(&tensor, &tensor, &options, &chunks_[index].handle);
}

hvd_status_t Bucket::Ready(int32_t index) {
  if (Process::forked()) return NotInitialized();  // mutex_ may be held for ever
  if (View(index) == nullptr) {
    return Fail(HVD_ERR_INVALID, "bucket " + ShownName(options_.name) + " has no tensor " +
                                     std::to_string(index) + "; it has " +
                                     std::to_string(plan_.views.size()));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (ready_[index]) {
    return Fail(HVD_ERR_INVALID, "tensor " + std::to_string(index) + " of bucket " +
                                     ShownName(options_.name) +
                                     " is ready already; wait for the bucket before its next use");
  }
  return ReadyLocked(static_cast<size_t>(index));
}

hvd_status_t Bucket::ReadyLocked(size_t index) {
  Chunk& chunk = chunks_[plan_.views[index].chunk];
  if (chunk.missing == 1) {
    const hvd_status_t submitted = SubmitLocked(plan_.views[index].chunk);
    if (submitted != HVD_OK) return submitted;
  }
  --chunk.missing;
  ready_[index] = true;
  return HVD_OK;
}

// "1, 4 and 12 more"; empty when all are ready.
std::string Bucket::MissingLocked() const {
  std::string text;
  int missing = 0;
  for (size_t i = 0; i < ready_.size(); ++i) {
    if (ready_[i]) continue;
    if (++missing <= kNamedMissing) text += (missing > 1 ? ", " : "") + std::to_string(i);
  }
  if (missing > kNamedMissing) text += " and " + std::to_string(missing - kNamedMissing) + " more";
  return text;
}

hvd_status_t Bucket::Wait() {
  if (Process::forked()) return NotInitialized();
  std::vector<Chunk> chunks;
  hvd_handle_t asked = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (const std::string missing = MissingLocked(); !missing.empty()) {
      return Fail(HVD_ERR_INVALID, "bucket " + ShownName(options_.name) +
                                       " cannot be waited for: not ready are " + missing);
    }
    // Another rank's may have tensors.
    const hvd_status_t empty = plan_.views.empty() ? agreement_.Ask() : HVD_OK;
    if (empty != HVD_OK) return empty;
    asked = agreement_.Take();
    chunks = chunks_;
    // Until all are done, a tensor that is made ready again is refused.
    for (Chunk& chunk : chunks_) chunk.handle = 0;
  }
  const hvd_status_t status = Finish(asked, chunks);
  std::lock_guard<std::mutex> lock(mutex_);
  ResetLocked();
  return status;
}

hvd_status_t Bucket::Reset() {
  if (Process::forked()) return NotInitialized();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::find(ready_.begin(), ready_.end(), true) == ready_.end()) return HVD_OK;
    for (size_t i = 0; i < ready_.size(); ++i) {
      if (ready_[i]) continue;
      std::memset(View(static_cast<int32_t>(i)), 0,
                  plan_.views[i].count * DtypeBytes(options_.dtype));
      if (const hvd_status_t made = ReadyLocked(i); made != HVD_OK) return made;
    }
  }
  return Wait();
}

// The first error stays the thread's last; the agreement's says most.
hvd_status_t Bucket::Finish(hvd_handle_t asked, const std::vector<Chunk>& chunks) {
  size_t most_chunks = 0;
  hvd_status_t first = agreement_.Wait(asked, &most_chunks);
  std::string why = first != HVD_OK ? hvd_last_error() : "";
  FillIn(most_chunks);
  for (const Chunk& chunk : chunks) {
    const hvd_status_t status = chunk.handle != 0 ? hvd_wait(chunk.handle) : HVD_OK;
    if (first != HVD_OK || status == HVD_OK) continue;
    first = status;
    why = hvd_last_error();
  }
  return first == HVD_OK ? HVD_OK : Fail(first, std::move(why));
}

// Other ranks have more chunks than this one and wait for it: an empty tensor under the name of
// each ends that.
void Bucket::FillIn(size_t most_chunks) {
  const int64_t nothing = 0;
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.shape = &nothing;
  tensor.ndim = 1;
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.process_set = options_.reduction.process_set;
  for (size_t i = plan_.chunks.size(); i < most_chunks; ++i) {
    const std::string name = options_.name + "." + std::to_string(i);
    options.name = name.c_str();
    hvd_allreduce(&tensor, &tensor, &options);
  }
}

}  // namespace hvd
