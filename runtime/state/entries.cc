// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/entries.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "runtime/collective/collectives.h"

namespace hvd::rt {
namespace {

StateItem ItemOf(const std::string& name, const StateTensor& entry) {
  StateItem item;
  item.name = name;
  item.kind = entry.kind;
  item.dtype = entry.tensor.dtype;
  item.shape = entry.shape;
  item.bytes = DtypeBytes(static_cast<hvd_dtype_t>(item.dtype));
  for (const int64_t length : item.shape) item.bytes *= static_cast<uint64_t>(length);
  return item;
}

bool Same(const StateItem& a, const StateItem& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.shape == b.shape;
}

// With memory of hvd's. Null held: there is none.
StateTensor Held(const StateItem& item) {
  StateTensor made;
  made.shape = item.shape;
  made.kind = item.kind;
  made.is_held = true;
  const uint64_t bytes =
      std::max((item.bytes + kStateLine - 1) / kStateLine * kStateLine, kStateLine);
  made.held.reset(static_cast<std::byte*>(aligned_alloc(kStateLine, bytes)));
  made.tensor.data = made.held.get();
  made.tensor.ndim = static_cast<int32_t>(item.shape.size());
  made.tensor.dtype = item.dtype;
  return made;
}

}  // namespace

absl::Status NoMemoryFor(const StateItem& item) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for ", Describe(item), " of the state; give this process more"));
}

absl::Status StateEntries::Add(const std::string& name, const hvd_tensor_t& tensor, int32_t kind) {
  if (bytes_.count(name) != 0) {
    return absl::InvalidArgumentError(
        ShownName(name) + " has bytes of hvd_state_put; add the tensor under another name");
  }
  by_index_.clear();
  StateTensor& entry = tensors_[name];
  entry = StateTensor();
  entry.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  entry.tensor = tensor;
  entry.tensor.shape = entry.shape.data();
  entry.kind = kind;
  return absl::OkStatus();
}

absl::Status StateEntries::Remove(const std::string& name) {
  by_index_.clear();
  if (tensors_.erase(name) + bytes_.erase(name) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("the state has nothing of the name " + ShownName(name));
}

absl::Status StateEntries::Put(const std::string& name, std::string bytes) {
  if (tensors_.count(name) != 0) {
    return absl::InvalidArgumentError(ShownName(name) +
                                      " is a tensor's name; put the bytes under another");
  }
  bytes_[name] = std::move(bytes);
  return absl::OkStatus();
}

const std::string* StateEntries::Get(const std::string& name) const {
  const auto found = bytes_.find(name);
  return found == bytes_.end() ? nullptr : &found->second;
}

const std::pair<const std::string, StateTensor>* StateEntries::At(size_t index) const {
  if (by_index_.empty()) {
    for (const auto& each : tensors_) by_index_.push_back(&each);
  }
  return index < by_index_.size() ? by_index_[index] : nullptr;
}

std::vector<StateItem> StateEntries::Items(bool of_share) const {
  std::vector<StateItem> items;
  for (const auto& [name, entry] : tensors_) {
    if ((entry.kind == HVD_STATE_PRIVATE) == of_share) items.push_back(ItemOf(name, entry));
  }
  for (const auto& [name, bytes] : bytes_) {
    if (of_share) break;
    StateItem item;
    item.name = name;
    item.kind = HVD_STATE_FIRST;
    item.is_bytes = true;
    item.bytes = bytes.size();
    items.push_back(std::move(item));
  }
  return items;
}

absl::Status StateEntries::CheckFits(const std::vector<StateItem>& items) const {
  for (const StateItem& item : items) {
    const auto tensor = tensors_.find(item.name);
    if (tensor == tensors_.end() || tensor->second.is_held) continue;
    const StateItem own = ItemOf(item.name, tensor->second);
    if (!item.is_bytes && Same(own, item)) continue;
    return absl::InvalidArgumentError(absl::StrCat("the state has here ", Describe(own),
                                                   ", and there ", Describe(item),
                                                   "; add tensors of that shape, dtype and kind"));
  }
  return absl::OkStatus();
}

absl::Status StateEntries::CheckHas(const std::vector<StateItem>& items) const {
  std::set<std::string> names;
  for (const StateItem& item : items) names.insert(item.name);
  for (const auto& [name, entry] : tensors_) {
    if (entry.is_held || entry.kind == HVD_STATE_PRIVATE || names.count(name) != 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(ShownName(name),
                     " was added here, and the root's state does not have it; add "
                     "the same tensors on all ranks"));
  }
  return absl::OkStatus();
}

absl::Status StateEntries::Hold(const std::vector<StateItem>& items, bool of_share) {
  std::map<std::string, StateTensor> held;
  for (const StateItem& item : items) {
    const auto own = tensors_.find(item.name);
    if (item.is_bytes || (own != tensors_.end() && !own->second.is_held)) continue;
    StateTensor made = Held(item);
    if (made.held == nullptr) return NoMemoryFor(item);
    made.tensor.shape = nullptr;
    held.emplace(item.name, std::move(made));
  }
  by_index_.clear();
  for (auto each = tensors_.begin(); each != tensors_.end();) {
    const bool goes = each->second.is_held && (each->second.kind == HVD_STATE_PRIVATE) == of_share;
    each = goes ? tensors_.erase(each) : std::next(each);
  }
  for (auto& [name, entry] : held) {
    StateTensor& kept = tensors_[name] = std::move(entry);
    kept.tensor.shape = kept.shape.data();
  }
  return absl::OkStatus();
}

}  // namespace hvd::rt
