// SPDX-License-Identifier: Apache-2.0
// This rank's marks on the board: one compare-and-swap on the entry's word (MarkWord) for a name
// that it has marked before and asks the same of, and else one under the board's lock.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/engine/agreement/board/completion.h"
#include "runtime/engine/agreement/board/names.h"

namespace hvd::rt {

// Threads: whoever submits, one at a time.
class BoardMarks {
 public:
  // An entry, and its run when this rank marked it (MarkWord::run).
  struct Marked {
    uint32_t number = kNoNumber;
    int run = 0;
  };

  BoardMarks(const BoardRoom* room, BoardNames* names, BoardCompletion* completion)
      : room_(*room), names_(*names), completion_(*completion) {}

  // As Board's.
  void set_before_mark(std::function<void(uint32_t)> call) { before_mark_ = std::move(call); }

  // kNoNumber: it is not as this rank remembers it, and not marked.
  Marked MarkKnown(std::string_view name, const MarkValue& value);
  // kNoNumber or kNoRoomLeft: there is no number for it, and it is not marked.
  Marked MarkNew(std::string_view name, const MarkValue& value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(kBoardLock);
  // This rank joins. It does not follow changes until the others have joined (MarkWord::kVersion).
  void Forget();

 private:
  // A number as this rank remembers it, so that a mark needs no look at the shared names, nor
  // for where things lie: they never move.
  struct Known {
    std::string name;
    BoardEntry* entry = nullptr;
    std::atomic<uint8_t>* outstanding = nullptr;  // this rank's
    uint32_t version = 0;
    bool registered = false;
    Signature agreed;
  };
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  bool TryMark(uint32_t number, const MarkValue& value, uint64_t counts);
  void Remember(uint32_t number, std::string_view name);
  void Propose(BoardEntry* entry, const Signature& signature);

  const BoardRoom& room_;
  BoardNames& names_;
  BoardCompletion& completion_;
  std::function<void(uint32_t)> before_mark_;
  std::unordered_map<std::string, uint32_t, NameHash, std::equal_to<>> numbers_;
  std::vector<Known> known_;  // by number
};

}  // namespace hvd::rt
