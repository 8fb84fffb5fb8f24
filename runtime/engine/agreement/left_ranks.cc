// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/left_ranks.h"

namespace hvd::rt {

void LeftRanks::Add(int source, const LeftNote& note) {
  lefts_.push_back({source, note.rank, {note.names.begin(), note.names.end()}});
}

void LeftRanks::Forget(const std::string& name) {
  for (Left& left : lefts_) left.names.erase(name);
}

std::vector<std::string> LeftRanks::StillToReport(int source,
                                                  const std::vector<std::string>& names) const {
  std::unordered_set<std::string> still(names.begin(), names.end());
  std::erase_if(still, [this](const std::string& name) {
    const LeaderTensor* tensor = tensors_.FindName(name);
    return tensor != nullptr && tensor->pending;
  });
  tensors_.ForEach([&](const LeaderTensor* tensor) {
    if ((tensor->present >> source & 1) != 0) still.insert(tensor->name);
  });
  return {still.begin(), still.end()};
}

int LeftRanks::WhoCannotAnswer(const LeaderTensor& tensor) const {
  if (lefts_.empty()) return -1;
  // A rank that has left has asked for the leave, and at the end every rank has.
  if (tensor.present == 0 || tensor.kind() == RequestKind::kLeave) return -1;
  for (const Left& left : lefts_) {
    const bool reported = (tensor.present >> left.source & 1) != 0;
    if (!reported && left.names.count(tensor.name) == 0) return left.rank;
  }
  return -1;
}

}  // namespace hvd::rt
