// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/tensor_table.h"

namespace hvd::rt {

LeaderTensor* TensorTable::FindId(uint64_t id) const {
  const auto found = by_id_.find(id);
  return found != by_id_.end() ? found->second : nullptr;
}

LeaderTensor* TensorTable::FindName(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found != by_name_.end() ? found->second.get() : nullptr;
}

LeaderTensor& TensorTable::FindOrCreate(std::string_view name) {
  if (LeaderTensor* found = FindName(name)) return *found;
  auto made = std::make_unique<LeaderTensor>();
  made->name = name;
  LeaderTensor& tensor = *made;
  by_name_.emplace(tensor.name, std::move(made));
  return tensor;
}

LeaderTensor* TensorTable::FindNumber(uint32_t number, uint64_t tenant) const {
  if (number >= by_number_.size()) return nullptr;
  LeaderTensor* tensor = by_number_[number];
  return tensor != nullptr && tensor->tenant == tenant ? tensor : nullptr;
}

void TensorTable::SetNumber(LeaderTensor* tensor, uint32_t number, uint64_t tenant) {
  if (by_number_.size() <= number) by_number_.resize(number + 1);
  if (tensor->number != 0 && by_number_[tensor->number] == tensor) {
    by_number_[tensor->number] = nullptr;
  }
  by_number_[number] = tensor;
  tensor->number = number;
  tensor->tenant = tenant;
}

void TensorTable::SetId(LeaderTensor* tensor, uint64_t id) {
  by_id_[id] = tensor;
  tensor->id = id;
  tensor->retired = false;
}

void TensorTable::DropId(uint64_t id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  LeaderTensor* tensor = found->second;
  by_id_.erase(found);
  if (tensor->id != id) return;
  tensor->id = 0;
  tensor->retired = false;
  ForgetIfIdle(tensor);
}

void TensorTable::ForgetIfIdle(LeaderTensor* tensor) {
  if (tensor->id != 0 || tensor->in_use()) return;
  if (tensor->number != 0 && by_number_[tensor->number] == tensor) {
    by_number_[tensor->number] = nullptr;
  }
  by_name_.erase(by_name_.find(tensor->name));
}

}  // namespace hvd::rt
