// SPDX-License-Identifier: Apache-2.0
// A leader's knowledge of tensors: their ids, what was agreed for them, who has reported them.
// Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/engine/agreement/board/report.h"

namespace hvd::rt {

struct LeaderTensor {
  std::string name;
  uint64_t id = 0;       // the root's; 0: none yet, or forgotten
  bool retired = false;  // the id is understood and not used any more
  bool is_known = false;
  Signature agreed;   // when known
  uint64_t used = 0;  // the batch of its last decision; the root's

  // On this host's board.
  uint32_t number = 0;
  uint64_t tenant = 0;
  bool on_board = false;  // complete there, and not in the log yet

  // The run that is being reported.
  uint32_t present = 0;  // by source, see LeaderCore
  bool pending = false;  // reported to the parent; no decision yet
  bool all_same = true;  // as agreed; `report` has no signature then
  Report report;

  // Returns the kind of the run that is being reported.
  RequestKind kind() const { return all_same ? agreed.kind : report.first.signature.kind; }
  bool in_use() const { return on_board || present != 0 || pending; }
};

class TensorTable {
 public:
  LeaderTensor* FindId(uint64_t id) const;  // null: unknown
  LeaderTensor* FindName(std::string_view name) const;
  LeaderTensor& FindOrCreate(std::string_view name);
  // Finds the tensor of the board's number, if the number still is of that tenant; otherwise null.
  LeaderTensor* FindNumber(uint32_t number, uint64_t tenant) const;
  void SetNumber(LeaderTensor* tensor, uint32_t number, uint64_t tenant);
  void SetId(LeaderTensor* tensor, uint64_t id);
  // The id means nothing any more; a tensor that has nothing else is forgotten.
  void DropId(uint64_t id);
  void ForgetIfIdle(LeaderTensor* tensor);
  size_t ids() const { return by_id_.size(); }
  template <class Visit>
  void ForEach(Visit visit) const {
    for (const auto& [name, tensor] : by_name_) visit(tensor.get());
  }

 private:
  std::unordered_map<std::string_view, std::unique_ptr<LeaderTensor>> by_name_;  // keys: its name
  std::unordered_map<uint64_t, LeaderTensor*> by_id_;
  std::vector<LeaderTensor*> by_number_;
};

}  // namespace hvd::rt
