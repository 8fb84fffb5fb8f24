// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/pmix_store.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "runtime/adoption/value_text.h"
#include "runtime/transport/signals_blocked.h"

namespace hvd::rt {
namespace {

constexpr char kKey[] = "hvd.adopt";                     // MPI's own keys begin otherwise
constexpr auto kGetPatience = std::chrono::seconds(30);  // for what the fence has collected

// A fence that has begun. PMIx may be done with it after its store has given up, and then holds it
// alone.
struct Fence {
  PmixProcess all;
  PmixInfo collects = PmixOption("pmix.collect", kPmixBool);
  Mutex mutex;
  Condition over;
  std::optional<int> result ABSL_GUARDED_BY(mutex);
};

void EndFence(int result, void* context) {
  auto* held = static_cast<std::shared_ptr<Fence>*>(context);
  const std::shared_ptr<Fence> fence = *held;
  delete held;
  const MutexLock lock(&fence->mutex);
  fence->result = result;
  fence->over.NotifyAll();
}

// Nothing: it is not over in time.
std::optional<int> AwaitFence(Fence* fence, TimePoint until) {
  const MutexLock lock(&fence->mutex);
  while (!fence->result.has_value() && Clock::now() < until) {
    fence->over.WaitUntil(&fence->mutex, until);
  }
  return fence->result;
}

class PmixStore : public LauncherStore {
 public:
  PmixStore(PmixLibrary library, int size) : library_(std::move(library)), size_(size) {}
  ~PmixStore() override;

  absl::Status Begin(int rank);
  absl::StatusOr<std::vector<std::string>> Exchange(const std::string& mine,
                                                    std::chrono::milliseconds patience) override;

 private:
  PmixProcess Process(uint32_t rank) const;
  absl::Status CheckPlace(int rank);
  absl::Status Give(const std::string& mine);
  absl::Status AwaitAll(std::chrono::milliseconds patience);
  absl::StatusOr<std::string> Get(int rank);

  PmixLibrary library_;
  const int size_;
  PmixProcess self_ = {};
  bool begun_ = false;
};

// mpirun takes the end of a process that has begun with PMIx for a crash, unless the process takes
// its leave. PMIx counts who has begun, so the program's own MPI goes on.
PmixStore::~PmixStore() {
  if (begun_) library_.calls().finalize(nullptr, 0);
}

PmixProcess PmixStore::Process(uint32_t rank) const {
  PmixProcess process = self_;
  process.rank = rank;
  return process;
}

absl::Status PmixStore::Begin(int rank) {
  {
    const SignalsBlocked blocked;  // PMIx begins a thread
    const int result = library_.calls().init(&self_, nullptr, 0);
    if (absl::Status begun = library_.Check(result, "PMIx_Init"); !begun.ok()) {
      return absl::UnavailableError(
          absl::StrCat(begun.message(),
                       "; next: start the program by mpirun, by srun --mpi=pmix, "
                       "or by hvdrun"));
    }
  }
  begun_ = true;
  return CheckPlace(rank);
}

// Without a launcher that it knows, PMIx makes of each process a job of its own.
absl::Status PmixStore::CheckPlace(int rank) {
  const PmixProcess all = Process(kPmixEveryRank);
  PmixValue* value = nullptr;
  uint32_t size = static_cast<uint32_t>(size_);
  if (library_.calls().get(&all, "pmix.job.size", nullptr, 0, &value) == kPmixSuccess) {
    if (value->type == kPmixUint32) size = value->data.uint32;
    free(value);
  }
  if (self_.rank == static_cast<uint32_t>(rank) && size == static_cast<uint32_t>(size_)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("PMIx (", library_.path(), ") calls this process ", self_.rank, " of ", size,
                   ", but by its environment it is ", rank, " of ", size_,
                   "; next: start the program by mpirun itself, or by hvdrun"));
}

absl::Status PmixStore::Give(const std::string& mine) {
  std::string text = ValueText(mine);
  PmixValue value = {};
  value.type = kPmixString;
  value.data.string = text.data();
  const PmixFunctions& calls = library_.calls();
  absl::Status put = library_.Check(calls.put(kPmixGlobal, kKey, &value), "PMIx_Put");
  return put.ok() ? library_.Check(calls.commit(), "PMIx_Commit") : put;
}

// The wait is here and not PMIx's: launchers are free to leave its time limits alone.
absl::Status PmixStore::AwaitAll(std::chrono::milliseconds patience) {
  const auto fence = std::make_shared<Fence>();
  fence->all = Process(kPmixEveryRank);
  fence->collects.value.data.flag = true;  // each process reads what all have given
  auto held = std::make_unique<std::shared_ptr<Fence>>(fence);
  const int begun =
      library_.calls().begin_fence(&fence->all, 1, &fence->collects, 1, EndFence, held.get());
  if (begun != kPmixSuccess) return library_.Check(begun, "PMIx_Fence_nb");
  (void)held.release();  // EndFence has it
  const std::optional<int> result = AwaitFence(fence.get(), Clock::now() + patience);
  if (result.has_value()) return library_.Check(*result, "PMIx_Fence_nb");
  return absl::DeadlineExceededError(
      absl::StrCat("not all of the launcher's ", size_, " processes have come in ",
                   std::chrono::duration<double>(patience).count(),
                   " s (PMIx); next: look that every one of them calls hvd's init"));
}

absl::StatusOr<std::string> PmixStore::Get(int rank) {
  const PmixProcess process = Process(static_cast<uint32_t>(rank));
  PmixInfo limit = PmixOption("pmix.timeout", kPmixInt);
  limit.value.data.integer = static_cast<int>(kGetPatience.count());
  PmixValue* value = nullptr;
  const int result = library_.calls().get(&process, kKey, &limit, 1, &value);
  if (absl::Status got = library_.Check(result, "PMIx_Get"); !got.ok()) {
    return absl::UnavailableError(
        absl::StrCat("what rank ", rank, " gave is not to be had: ", got.message(),
                     "; next: look whether all processes have the same hvd"));
  }
  std::optional<std::string> bytes;
  if (value->type == kPmixString) {
    bytes = ParseValueText(value->data.string);
    free(value->data.string);
  }
  free(value);
  if (bytes.has_value()) return *std::move(bytes);
  return absl::UnavailableError(
      absl::StrCat("PMIx has something else than rank ", rank, " gave (", library_.path(),
                   "); next: look whether all processes have the same hvd"));
}

absl::StatusOr<std::vector<std::string>> PmixStore::Exchange(const std::string& mine,
                                                             std::chrono::milliseconds patience) {
  absl::Status done = Give(mine);
  if (done.ok()) done = AwaitAll(patience);
  if (!done.ok()) return done;
  std::vector<std::string> all;
  for (int rank = 0; rank < size_; ++rank) {
    absl::StatusOr<std::string> theirs = Get(rank);
    if (!theirs.ok()) return theirs.status();
    all.push_back(*std::move(theirs));
  }
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LauncherStore>> OpenPmixStore(int rank, int size,
                                                             const PmixPlaces& places) {
  absl::StatusOr<PmixLibrary> library = PmixLibrary::Load(places);
  if (!library.ok()) return library.status();
  auto store = std::make_unique<PmixStore>(*std::move(library), size);
  if (absl::Status begun = store->Begin(rank); !begun.ok()) return begun;
  return store;
}

absl::StatusOr<std::unique_ptr<LauncherStore>> OpenPmixStore(int rank, int size) {
  return OpenPmixStore(rank, size, FindPmixPlaces(getenv));
}

}  // namespace hvd::rt
