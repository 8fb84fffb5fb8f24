// SPDX-License-Identifier: Apache-2.0
// What a program has added to its state: tensors in its memory, or held for it in hvd's, and bytes.
// A value without threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "hvd/hvd.h"
#include "runtime/state/state_layout.h"

namespace hvd::rt {

struct StateTensor {
  std::vector<int64_t> shape;
  hvd_tensor_t tensor = HVD_TENSOR_INIT;  // its shape is the one above
  int32_t kind = HVD_STATE_REPLICATED;
  std::unique_ptr<std::byte, void (*)(void*)> held{nullptr, free};  // its data, where hvd has it

  bool is_held = false;
};

// ResourceExhausted: this process cannot take it.
absl::Status NoMemoryFor(const StateItem& item);

class StateEntries {
 public:
  // The name is one that users may give, and the tensor is whole.
  absl::Status Add(const std::string& name, const hvd_tensor_t& tensor, int32_t kind);
  absl::Status Remove(const std::string& name);
  absl::Status Put(const std::string& name, std::string bytes);
  const std::string* Get(const std::string& name) const;  // null: there are none
  const std::map<std::string, StateTensor>& tensors() const { return tensors_; }
  // The tensor of this index, by name: null beyond the last. Going through all takes time as they
  // are many, not as their square.
  const std::pair<const std::string, StateTensor>* At(size_t index) const;

  // All of them, without offsets; the private ones or all others.
  std::vector<StateItem> Items(bool of_share) const;
  // Where an item of these lies. REQUIRES: it is one.
  const hvd_tensor_t& TensorOf(const StateItem& item) const {
    return tensors_.at(item.name).tensor;
  }
  const std::string& BytesOf(const StateItem& item) const { return bytes_.at(item.name); }

  // Checks that the items, which are somebody else's, fit what was added here.
  absl::Status CheckFits(const std::vector<StateItem>& items) const;
  // Likewise the other way: what was added here, but the private, is in them.
  absl::Status CheckHas(const std::vector<StateItem>& items) const;
  // Memory for the tensors of `items` that nobody has added; those held before are gone. Once
  // CheckFits is OK. ResourceExhausted: nothing has changed.
  absl::Status Hold(const std::vector<StateItem>& items, bool of_share);
  void SetBytes(std::map<std::string, std::string> bytes) { bytes_ = std::move(bytes); }

 private:
  std::map<std::string, StateTensor> tensors_;
  std::map<std::string, std::string> bytes_;
  // tensors_ as At has found them, or empty.
  mutable std::vector<const std::pair<const std::string, StateTensor>*> by_index_;
};

}  // namespace hvd::rt
