// SPDX-License-Identifier: Apache-2.0
// How a state comes to those who have none: the root's directory first, then each item's bytes, by
// broadcasts in a process set of the root and the needy.
#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/errors/errors.h"
#include "runtime/state/directory.h"
#include "runtime/state/elastic/state.h"

namespace hvd::rt {
namespace {

constexpr size_t kMostUnderWay = 64;
constexpr char kSetKey[] = "\x01state";  // of the process set; no user's
constexpr uint64_t kAnyBytes = uint64_t{1} << 62;

// A code of the C ABI with its message, as a status.
absl::Status StatusOf(hvd_status_t code) {
  if (code == HVD_OK) return absl::OkStatus();
  const char* const why = hvd_last_error();
  if (code == HVD_ERR_ABORTED || code == HVD_ERR_NOT_INITIALIZED) return absl::AbortedError(why);
  return code == HVD_ERR_MISMATCH ? absl::FailedPreconditionError(why) : absl::InternalError(why);
}

using BytesByName = std::map<std::string, std::string>;

// Memory as a tensor of one dimension.
struct Row {
  Row(void* data, uint64_t count, hvd_dtype_t dtype) : length(static_cast<int64_t>(count)) {
    tensor.data = data;
    tensor.shape = &length;
    tensor.ndim = 1;
    tensor.dtype = dtype;
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  const int64_t length;
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
};

// The process set for as long as the state travels.
class Travel {
 public:
  Travel(const EpochState& epoch, ProcessSets* sets)
      : sets_(*sets), root_(epoch.epoch.root), is_root_(epoch.epoch.rank == root_) {
    ranks_.assign(epoch.needy.begin(), epoch.needy.end());
    ranks_.push_back(root_);
    std::sort(ranks_.begin(), ranks_.end());
    under_way_.reserve(kMostUnderWay);  // nothing may be thrown while something is under way
  }
  ~Travel() {
    if (set_ != 0) (void)sets_.Remove(set_).ok();  // a broken epoch removes it
  }
  Travel(const Travel&) = delete;
  Travel& operator=(const Travel&) = delete;

  // One that an earlier try has left is as good.
  absl::Status Begin() {
    absl::Status made = sets_.AddMembers(ranks_, kSetKey, &set_);
    return absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
  }
  bool is_root() const { return is_root_; }

  // The root's bytes, into all others' memory. Begins it; Await ends all that has begun.
  absl::Status Send(void* data, uint64_t bytes) {
    if (bytes == 0) return absl::OkStatus();
    Row row(data, bytes, HVD_UINT8);
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.process_set = set_;
    options.root = root_;
    hvd_handle_t handle = 0;
    absl::Status begun = StatusOf(hvd_broadcast_async(&row.tensor, &row.tensor, &options, &handle));
    if (!begun.ok()) return begun;
    under_way_.push_back(handle);
    return under_way_.size() < kMostUnderWay ? absl::OkStatus() : Await();
  }
  // The first error; afterwards nothing uses the memory any more.
  absl::Status Await() {
    absl::Status status;
    for (const hvd_handle_t handle : under_way_) status.Update(StatusOf(hvd_wait(handle)));
    under_way_.clear();
    return status;
  }
  // Whether all are fine; each of those that are not says why itself.
  absl::Status AgreeThat(const absl::Status& fine) {
    int64_t bad = fine.ok() ? 0 : 1;
    Row row(&bad, 1, HVD_INT64);
    hvd_options_t options = HVD_OPTIONS_INIT;
    options.process_set = set_;
    options.op = HVD_MAX;
    absl::Status agreed = StatusOf(hvd_allreduce(&row.tensor, &row.tensor, &options));
    if (!agreed.ok() || bad == 0) return agreed;
    if (!fine.ok()) return fine;
    return absl::FailedPreconditionError(
        "other ranks cannot take the root's state: it does not fit what they have added, or they "
        "have no memory for it; their own errors say which");
  }

 private:
  ProcessSets& sets_;
  const int root_;
  const bool is_root_;
  std::vector<int32_t> ranks_;
  int32_t set_ = 0;
  std::vector<hvd_handle_t> under_way_;
};

// Shares the root's directory, which says what travels, and in which order.
absl::StatusOr<std::string> ShareDirectory(const StateEntries& entries, Travel* travel,
                                           GoesOnFrom* from) {
  std::string directory;
  if (travel->is_root()) directory = WriteDirectory(PlanState(entries.Items(false)).items);
  uint64_t words[3] = {from->commit, from->steps, directory.size()};
  absl::Status sent = travel->Send(words, sizeof(words));
  sent.Update(travel->Await());
  if (!sent.ok()) return sent;
  *from = {words[0], words[1]};
  directory.resize(words[2]);
  sent = travel->Send(directory.data(), directory.size());
  sent.Update(travel->Await());
  if (!sent.ok()) return sent;
  return directory;
}

// One that lies on a GPU, by way of the host's memory.
absl::Status SendFromGpu(const StateItem& item, const ImageOf& of, Travel* travel) {
  const hvd_tensor_t& tensor = of.entries.TensorOf(item);
  std::vector<std::byte> staged(item.bytes);
  absl::Status status;
  if (travel->is_root()) status = of.bytes.CopyOut(tensor, {0, item.bytes}, staged.data());
  // The others wait for it in any case.
  status.Update(travel->Send(staged.data(), item.bytes));
  status.Update(travel->Await());
  if (status.ok() && !travel->is_root()) {
    status = of.bytes.CopyIn(tensor, {0, item.bytes}, staged.data());
  }
  return status;
}

// Room for the bytes among the items; the root's have them already.
absl::Status TakeRoom(const std::vector<StateItem>& items, const StateEntries& entries,
                      const Travel& travel, BytesByName* room) {
  for (const StateItem& item : items) {
    if (!item.is_bytes) continue;
    try {
      std::string& data = (*room)[item.name];
      if (travel.is_root()) data = entries.BytesOf(item);
      data.resize(item.bytes);
    } catch (const std::bad_alloc&) {
      return NoMemoryFor(item);
    }
  }
  return absl::OkStatus();
}

// `room`: of TakeRoom.
absl::Status SendItems(const std::vector<StateItem>& items, const ImageOf& of, Travel* travel,
                       BytesByName room) {
  absl::Status status;
  for (const StateItem& item : items) {
    if (item.is_bytes) {
      status.Update(travel->Send(room.at(item.name).data(), item.bytes));
      continue;
    }
    const hvd_tensor_t& tensor = of.entries.TensorOf(item);
    status.Update(tensor.device_type == HVD_CPU ? travel->Send(tensor.data, item.bytes)
                                                : SendFromGpu(item, of, travel));
    if (absl::IsAborted(status)) break;
  }
  status.Update(travel->Await());
  if (status.ok() && !travel->is_root()) of.entries.SetBytes(std::move(room));
  return status;
}

}  // namespace

absl::Status BringState(const Bringing& bringing, const absl::Status& before, GoesOnFrom* from) {
  StateEntries& entries = bringing.of.entries;
  Travel travel(bringing.epoch, &bringing.sets);
  if (absl::Status begun = travel.Begin(); !begun.ok()) return begun;
  const auto directory = ShareDirectory(entries, &travel, from);
  if (!directory.ok()) return directory.status();
  const auto items = ReadDirectory(*directory, kAnyBytes);
  absl::Status fits = before;
  fits.Update(items.status());
  if (fits.ok() && !travel.is_root()) {
    fits = entries.CheckFits(*items);
    if (fits.ok()) fits = entries.CheckHas(*items);
    if (fits.ok()) fits = entries.Hold(*items, false);
  }
  BytesByName room;
  if (fits.ok()) fits = TakeRoom(*items, entries, travel, &room);
  if (absl::Status all = travel.AgreeThat(fits); !all.ok()) {
    return absl::IsInvalidArgument(all) ? absl::FailedPreconditionError(all.message()) : all;
  }
  return SendItems(*items, bringing.of, &travel, std::move(room));
}

}  // namespace hvd::rt
